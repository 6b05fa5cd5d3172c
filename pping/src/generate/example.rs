//! The example configuration: every option with its help, and its default or an example.

use std::fmt::Write as _;

use crate::config::definition::Definition;

/// The options that a service needs. They are set in the example.
const SERVICE: [&str; 5] = ["interface", "wait", "listen", "format", "history"];

const HEAD: &str = "\
# /etc/pping/pping.toml: the configuration of the pping service.
#
# Keys are the long options of pping(1). The command line wins over PPING_* variables of the environment, those
# win over this file, and this file over the defaults. A pping that is started by hand with -i or -r does not
# read it, unless --config names it.
#
#   pping config check          reports every error in this file, with line and column
#   pping config show           shows the current values, and where each is set
#   systemctl reload pping      reads this file again, without missing a packet
#
# Lines that begin with one `#` are options at their default, or examples for those that have none.
# See pping.toml(5).
";

/// The width of comments.
const WIDTH: usize = 100;

/// Writes the file.
pub(super) fn file() -> String {
    let options = Definition::all().into_iter().filter(Definition::is_for_files);
    let (service, others): (Vec<_>, Vec<_>) =
        options.partition(|option| SERVICE.contains(&option.key.as_str()));
    let mut text = HEAD.to_owned();
    title(&mut text, "What a service needs");
    for key in SERVICE {
        for option in service.iter().filter(|option| option.key == key) {
            describe(&mut text, option);
            // Writing to a string cannot fail.
            writeln!(text, "{key} = {}", option.example()).ok();
        }
    }
    let mut heading = "";
    for option in &others {
        if option.heading() != heading {
            heading = option.heading();
            title(&mut text, heading);
        }
        describe(&mut text, option);
        writeln!(text, "#{} = {}", option.key, option.example()).ok();
    }
    text
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
    comment(text, option.on_reload());
}

/// Writes a comment, wrapped into lines that begin with `##`: only options begin with one `#`.
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
    use crate::config::definition::Kind;

    #[test]
    fn there_is_an_example_where_there_is_no_default() {
        let has_default = |option: &Definition| option.kind != Kind::List && option.default().is_some();
        for option in Definition::all().iter().filter(|option| option.is_for_files() && !has_default(option))
        {
            let value = option.example();
            assert!(!["", "[]"].contains(&value.as_str()), "give {} an example", option.key);
        }
    }
}
