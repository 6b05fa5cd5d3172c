//! Writing a man page.

use roff::{Inline, Roff, bold, italic, roman};

use crate::config::definition::{Definition, Kind};

/// A page under way.
pub(super) struct Page {
    roff: Roff,
}

impl Page {
    pub(super) fn new(name: &str, section: &str, manual: &str) -> Self {
        let mut roff = Roff::new();
        // The date is left out, so that what is generated twice is the same.
        let source = concat!("pping ", env!("CARGO_PKG_VERSION"));
        roff.control("TH", [name, section, " ", source, manual]);
        // No hyphenation, and no stretching of lines: names of options look like others then.
        roff.control("nh", []);
        roff.control("ad", ["l"]);
        Self { roff }
    }

    pub(super) fn section(&mut self, title: &str) {
        self.roff.control("SH", [title]);
    }

    pub(super) fn subsection(&mut self, title: &str) {
        self.roff.control("SS", [title]);
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.roff.control("PP", []);
        self.text(text);
    }

    pub(super) fn paragraphs(&mut self, texts: &[&str]) {
        for text in texts {
            self.paragraph(text);
        }
    }

    /// A paragraph in which each of the texts has lines of its own.
    pub(super) fn lines(&mut self, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        self.roff.control("PP", []);
        for (index, text) in texts.into_iter().enumerate() {
            if index > 0 {
                self.roff.control("br", []);
            }
            self.text(text.as_ref());
        }
    }

    /// Lines that stay as they are.
    pub(super) fn literal(&mut self, text: &str) {
        self.roff.control("PP", []);
        self.roff.control("RS", ["4"]);
        self.roff.control("nf", []);
        for line in text.lines() {
            self.roff.text([roman(line)]);
        }
        self.roff.control("fi", []);
        self.roff.control("RE", []);
    }

    /// A term, and paragraphs about it.
    pub(super) fn item(&mut self, term: Vec<Inline>, about: impl IntoIterator<Item = impl AsRef<str>>) {
        self.roff.control("TP", []);
        self.roff.text(term);
        for (index, paragraph) in about.into_iter().enumerate() {
            if index > 0 {
                self.roff.control("IP", []);
            }
            self.text(paragraph.as_ref());
        }
    }

    /// What an option means, below its term, and then `more`.
    pub(super) fn option(&mut self, term: Vec<Inline>, option: &Definition, more: &str) {
        let help: Vec<String> = option.help().iter().map(|paragraph| sentence(paragraph)).collect();
        self.item(term, &help);
        let values = option.possible_values();
        if !values.is_empty() {
            self.roff.control("RS", []);
            for (value, meaning) in &values {
                self.item(vec![bold(value)], [sentence(meaning)]);
            }
            self.roff.control("RE", []);
        }
        if !more.is_empty() {
            self.roff.control("IP", []);
            self.text(more);
        }
    }

    /// Text in which `words` in backticks, and options, are bold.
    fn text(&mut self, text: &str) {
        let mut inlines = Vec::new();
        for (index, part) in text.split('`').enumerate() {
            if index % 2 == 1 {
                inlines.push(bold(part));
                continue;
            }
            for word in part.split_inclusive(' ') {
                let is_option = word.starts_with("--") || (word.starts_with('-') && word.len() > 2);
                let end = word.trim_end_matches([' ', '.', ',', ';', ':', ')']).len();
                if is_option {
                    inlines.extend([bold(&word[..end]), roman(&word[end..])]);
                } else {
                    inlines.push(roman(word));
                }
            }
        }
        self.roff.text(inlines);
    }

    pub(super) fn render(&self) -> String {
        self.roff.render()
    }
}

/// How an option is typed.
pub(super) fn typed(option: &Definition) -> Vec<Inline> {
    let mut term = Vec::new();
    if let Some(short) = option.short() {
        term.extend([bold(format!("-{short}")), roman(", ")]);
    }
    term.push(bold(format!("--{}", option.key)));
    if let Some(name) = option.value_name() {
        term.extend([roman(" "), italic(name)]);
    }
    term
}

/// How an option is written into a file.
pub(super) fn written(option: &Definition) -> Vec<Inline> {
    let name = || italic(option.value_name().unwrap_or_default());
    let mut term = vec![bold(&option.key), roman(" = ")];
    match option.kind {
        Kind::Switch => term.push(roman("true | false")),
        Kind::Count | Kind::Number => term.push(italic("number")),
        Kind::Text => term.extend([roman("\""), name(), roman("\"")]),
        Kind::List => term.extend([roman("[\""), name(), roman("\", ...]")]),
    }
    term
}

/// With a full stop.
pub(super) fn sentence(text: &str) -> String {
    if text.ends_with(['.', ':']) { text.to_owned() } else { format!("{text}.") }
}
