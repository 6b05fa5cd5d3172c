//! Writing a man page.

use std::borrow::Borrow;

use roff::{Inline, Roff, bold, italic, roman};

use crate::config::definition::{Definition, Kind};

/// A page being written.
pub(super) struct ManPage {
    roff: Roff,
}

impl ManPage {
    pub(super) fn new(name: &str, section: &str, manual: &str) -> Self {
        let mut roff = Roff::new();
        // Without a date, so that the output is reproducible.
        let source = concat!("pping ", env!("CARGO_PKG_VERSION"));
        roff.control("TH", [name, section, " ", source, manual]);
        // Without hyphenation and stretched lines, which would garble names of options.
        roff.control("nh", []);
        roff.control("ad", ["l"]);
        Self { roff }
    }

    /// Writes blocks of text, with an empty line between any two: `# SECTION`, `## Subsection`, `- term` with a text below
    /// it, `| line` for lines of their own, four spaces before lines that stay as they are, `@part` for what `insert` adds,
    /// or a paragraph.
    pub(super) fn prose(&mut self, text: &str, mut insert: impl FnMut(&mut Self, &str)) {
        for block in text.trim_end().split("\n\n") {
            let mark = block.find(|letter: char| !"#-|@ ".contains(letter)).unwrap_or_default();
            match block.split_at(mark) {
                ("# ", title) => {
                    self.roff.control("SH", [title]);
                }
                ("## ", title) => self.subsection(title),
                ("- ", item) => {
                    let (term, about) = item.split_once('\n').unwrap_or((item, ""));
                    self.item(inlines(term), [about.replace('\n', " ")]);
                }
                ("| ", _) => self.lines(block.lines().map(|line| line.trim_start_matches("| "))),
                ("    ", _) => self.literal(block),
                ("@", part) => insert(self, part),
                _ => {
                    self.roff.control("PP", []);
                    self.text(&block.replace('\n', " "));
                }
            }
        }
    }

    fn subsection(&mut self, title: &str) {
        self.roff.control("SS", [title]);
    }

    /// A paragraph in which each of the texts has its own lines.
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
    fn literal(&mut self, text: &str) {
        self.roff.control("PP", []);
        self.roff.control("RS", ["4"]);
        self.roff.control("nf", []);
        for line in text.lines() {
            self.roff.text([roman(line.trim_start())]);
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

    /// Writes all options under their headings, each with a term, its help, and the text from `more`.
    pub(super) fn options(
        &mut self,
        options: impl IntoIterator<Item = impl Borrow<Definition>>,
        term: impl Fn(&Definition) -> Vec<Inline>,
        more: impl Fn(&Definition) -> String,
    ) {
        let mut heading = String::new();
        for option in options {
            let option = option.borrow();
            if option.heading() != heading {
                option.heading().clone_into(&mut heading);
                self.subsection(&heading);
            }
            let help: Vec<String> = option.help().iter().map(|paragraph| sentence(paragraph)).collect();
            self.item(term(option), &help);
            let values = option.possible_values();
            if !values.is_empty() {
                self.roff.control("RS", []);
                for (value, meaning) in &values {
                    self.item(vec![bold(value)], [sentence(meaning)]);
                }
                self.roff.control("RE", []);
            }
            let more = more(option);
            if !more.is_empty() {
                self.roff.control("IP", []);
                self.text(&more);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.roff.text(inlines(text));
    }

    pub(super) fn render(&self) -> String {
        self.roff.render()
    }
}

/// Text in which `words` in backticks, and options, are bold.
fn inlines(text: &str) -> Vec<Inline> {
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
    inlines
}

/// An option as it is typed.
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

/// An option as it is written into a file.
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

/// Adds a full stop, unless the text has one or ends with a colon.
pub(super) fn sentence(text: &str) -> String {
    if text.ends_with(['.', ':']) { text.to_owned() } else { format!("{text}.") }
}
