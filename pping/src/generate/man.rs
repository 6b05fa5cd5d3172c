//! The man pages.

use roff::{bold, italic};

use super::page::{ManPage, sentence, typed, written};
use crate::{
    cli::{self, EXAMPLES},
    config::definition::Definition,
};

/// pping(1).
pub(super) fn program() -> String {
    let commands = commands(&cli::command());
    let synopsis = commands.iter().filter(|command| !command.is_family);
    let mut page = ManPage::new("PPING", "1", "User Commands");
    page.prose(include_str!("pping.1.txt"), |page, part| match part {
        "options" => page.options(Definition::all(), typed, |option| {
            match (option.value_name(), option.default().unwrap_or_default().first()) {
                (Some(_), Some(default)) => format!("The default is `{default}`."),
                _ => String::new(),
            }
        }),
        "commands" => {
            for Command { name, arguments, about, .. } in &commands {
                page.item(vec![bold(name), italic(arguments)], about);
            }
        }
        "examples" => {
            for (command, about) in examples() {
                page.item(vec![bold(command)], [about]);
            }
        }
        _ => page.lines(
            synopsis.clone().map(|Command { name, arguments, .. }| format!("`pping {name}`{arguments}")),
        ),
    });
    page.render()
}

/// pping.toml(5).
pub(super) fn configuration() -> String {
    let mut page = ManPage::new("PPING.TOML", "5", "File Formats");
    page.prose(include_str!("pping.toml.5.txt"), |page, _| {
        page.options(Definition::all().into_iter().filter(Definition::is_for_files), written, more);
    });
    page.render()
}

/// The default of an option or an example, its variable, and what a reload does.
fn more(option: &Definition) -> String {
    let default = match option.default() {
        Some(default) if !default.is_empty() => {
            format!("The default is `{}`.", option.to_toml(&default))
        }
        _ => format!("It is not set by default. An example: `{}`.", option.example()),
    };
    format!("{default} In the environment: `{}`. {}", option.variable(), option.on_reload())
}

/// A command.
struct Command {
    name: String,
    arguments: String,
    /// What it does, and its own options.
    about: Vec<String>,
    /// Whether these are the options of several commands.
    is_family: bool,
}

/// The commands, and what they do.
fn commands(command: &clap::Command) -> Vec<Command> {
    let mut found = Vec::new();
    for command in command.get_subcommands() {
        if command.has_subcommands() {
            let inner = commands(command).into_iter();
            found.extend(
                inner
                    .map(|inner| Command { name: format!("{} {}", command.get_name(), inner.name), ..inner }),
            );
            let about = own_options(command);
            if !about.is_empty() {
                let (name, arguments) = (command.get_name().to_owned(), " ... [OPTIONS]".to_owned());
                found.push(Command { name, arguments, about, is_family: true });
            }
            continue;
        }
        let mut arguments: String = command.get_positionals().map(argument).collect();
        let options: Vec<_> = command.get_opts().collect();
        match options[..] {
            [] => {}
            [option] => {
                let letter = option.get_short().map(|it| format!("-{it}")).unwrap_or_default();
                arguments.extend([" [", &letter, " ", &value_name(option), "]..."]);
            }
            _ => arguments.push_str(" [OPTIONS]"),
        }
        let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
        let mut about: Vec<String> = about.unwrap_or_default().split("\n\n").map(sentence).collect();
        for positional in command.get_positionals() {
            let values = positional.get_possible_values();
            let values: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
            if !values.is_empty() {
                about.push(format!("{} is one of {}.", value_name(positional), values.join(", ")));
            }
        }
        about.extend(own_options(command));
        found.push(Command { name: command.get_name().to_owned(), arguments, about, is_family: false });
    }
    found
}

/// The options of a command that pping without a command does not have.
fn own_options(command: &clap::Command) -> Vec<String> {
    let known = Definition::all();
    let is_own = |option: &&clap::Arg| {
        let name = option.get_long().unwrap_or_default();
        !option.is_hide_set() && !name.is_empty() && known.iter().all(|known| known.key != name)
    };
    let options = command.get_arguments().filter(|argument| !argument.is_positional()).filter(is_own);
    let about = |option: &clap::Arg| {
        let value = if option.get_action().takes_values() {
            format!(" {}", value_name(option))
        } else {
            String::new()
        };
        let help = option.get_long_help().or_else(|| option.get_help()).map(ToString::to_string);
        let help: Vec<String> = help.unwrap_or_default().split("\n\n").map(sentence).collect();
        format!("`--{}{value}`: {}", option.get_long().unwrap_or_default(), help.join(" "))
    };
    options.map(about).collect()
}

fn argument(argument: &clap::Arg) -> String {
    let name = value_name(argument);
    if argument.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
}

fn value_name(argument: &clap::Arg) -> String {
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    name.unwrap_or_else(|| argument.get_id().as_str().to_uppercase())
}

/// The examples of the help, each with what it does.
fn examples() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in EXAMPLES.lines().skip(1) {
        let text = line.trim();
        // The description is to the right of the command, or on the next line if there is no room.
        let is_command = line.len() - text.len() < 4;
        match (is_command, text.split_once("  "), found.last_mut()) {
            (true, Some((command, about)), _) => found.push((command.to_owned(), about.trim().to_owned())),
            (true, None, _) => found.push((text.to_owned(), String::new())),
            (false, _, Some((_, about))) => {
                if !about.is_empty() {
                    about.push(' ');
                }
                about.push_str(text);
            }
            (false, _, None) => {}
        }
    }
    found.into_iter().map(|(command, about)| (command, sentence(&capital(&about)))).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
