//! The example configuration: every option, what it means, and its default or what it may look like.

use std::fmt::Write as _;

use crate::config::option::Definition;

/// What a service needs, which is set in the example.
const SERVICE: [(&str, &str); 4] =
    [("interface", "[\"eth0\"]"), ("wait", "true"), ("listen", "\"127.0.0.1:9464\""), ("format", "\"none\"")];

/// Options without a default. Together they are a configuration that could be.
const EXAMPLES: [(&str, &str); 9] = [
    ("decap", "[\"gre\", \"vxlan\"]"),
    ("exclude", "[\"192.0.2.0/24\", \"2001:db8::/32\"]"),
    ("aggregate", "\"10s\""),
    ("group-by", "[\"dscp\"]"),
    ("groups", "\"/etc/pping/groups.csv\""),
    ("hdr-log", "\"/var/lib/pping/rtt.hlog\""),
    ("write", "\"/var/lib/pping/records.jsonl\""),
    ("web-config", "\"/etc/pping/web.yml\""),
    ("pin", "\"/sys/fs/bpf/pping\""),
];

const HEAD: &str = "\
# /etc/pping/pping.toml: what the pping service does.
#
# Keys are the long options of pping(1). What is on the command line wins over PPING_* variables of the
# environment, those win over this file, and this file over the defaults. A pping that is started by hand with
# -i or -r does not read it, unless --config names it.
#
#   pping config check          says what is wrong in here, with line and column
#   pping config show           says what is in effect, and where each value is from
#   systemctl reload pping      reads this again, without missing a packet
#
# Lines that begin with one `#` are options at their default, or examples for those that have none.
# See pping.toml(5).
";

/// Columns that comments fill.
const WIDTH: usize = 100;

/// Writes the file.
pub(super) fn file() -> String {
    let options: Vec<Definition> = Definition::all().into_iter().filter(Definition::is_for_files).collect();
    let mut text = HEAD.to_owned();
    title(&mut text, "What a service needs");
    for (key, value) in SERVICE {
        if let Some(option) = options.iter().find(|option| option.key == key) {
            describe(&mut text, option);
            // Writing to a string cannot fail.
            writeln!(text, "{key} = {value}").ok();
        }
    }
    let mut heading = "";
    for option in &options {
        if SERVICE.iter().any(|(key, _)| *key == option.key) {
            continue;
        }
        if option.heading() != heading {
            heading = option.heading();
            title(&mut text, heading);
        }
        describe(&mut text, option);
        writeln!(text, "#{} = {}", option.key, value(option)).ok();
    }
    text
}

/// The value an option is shown with.
pub(super) fn value(option: &Definition) -> String {
    let examples = EXAMPLES.iter().chain(&SERVICE);
    match examples.into_iter().find(|(key, _)| *key == option.key) {
        Some((_, value)) => (*value).to_owned(),
        None => option.written(&option.default().unwrap_or_default()),
    }
}

fn title(text: &mut String, title: &str) {
    writeln!(text, "\n\n### {title} ###").ok();
}

fn describe(text: &mut String, option: &Definition) {
    text.push('\n');
    for paragraph in option.help() {
        comment(text, &paragraph);
    }
    for (value, meaning) in option.possible_values() {
        comment(text, &format!("  \"{value}\": {meaning}"));
    }
    if let Some(words) = option.on_reload() {
        comment(text, words);
    }
}

/// Writes a comment, as many lines as it takes. It has two signs, so that options alone have one.
fn comment(text: &mut String, words: &str) {
    let indent = words.len() - words.trim_start().len();
    let mut line = format!("##{:indent$}", "");
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            writeln!(text, "{line}").ok();
            line = format!("##{:indent$}", "");
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(text, "{line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::option::Kind;

    #[test]
    fn there_is_an_example_where_there_is_no_default() {
        let has_default = |option: &Definition| option.kind != Kind::List && option.default().is_some();
        for option in Definition::all().iter().filter(|option| option.is_for_files() && !has_default(option))
        {
            let value = value(option);
            assert!(!["", "[]"].contains(&value.as_str()), "give {} an example", option.key);
        }
    }
}
