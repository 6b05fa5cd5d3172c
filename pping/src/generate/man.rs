//! pping(1).

use clap::CommandFactory as _;
use roff::{bold, italic, roman};

use super::page::{Page, sentence, typed};
use crate::{
    cli::{Cli, EXAMPLES},
    config::{DEFAULT_FILE, definition::Definition},
};

const DESCRIPTION: [&str; 4] = [
    "pping watches the packets that pass network interfaces of this machine, with programs that run in the kernel, and \
     tells the round-trip times of every flow from what is there anyway, like TCP timestamps, acknowledgements, \
     answers of DNS and the spin bit of QUIC. It sends nothing, and holds nothing up.",
    "A round-trip time lies between this machine and the host that replied. The two directions of a connection are \
     measured apart, so that a router sees the part of the path on either side of it.",
    "What is measured is written as records to standard output or a file, summed up by network, host or customer, or \
     served to Prometheus. With --read the same is made of a capture, for which no privileges are needed.",
    "Watching interfaces takes the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (CAP_SYS_ADMIN on kernels before \
     5.8), which root has.",
];

const SIGNALS: [(&str, &str); 2] = [
    (
        "SIGINT, SIGTERM",
        "End: take the programs off the interfaces, write what is left, and say in short on standard error what was \
         measured.",
    ),
    (
        "SIGHUP",
        "Make the configuration anew, read the groups file again, and open files that are written again, as log rotation \
         wants it. No packet is missed. An option that cannot change while pping runs is named in the log; a \
         configuration with a mistake in it changes nothing.",
    ),
];

const STATUS: [(&str, &str); 3] = [
    ("0", "All went well. This includes a reader of the output that had enough."),
    (
        "1",
        "Something went wrong while pping ran, for instance a capture that is cut short; or `pping check` found that it \
         cannot run.",
    ),
    (
        "2",
        "Something was wrong with the options, the environment, the configuration or privileges, and nothing was done. \
         The message on standard error says what, where, and what would be right.",
    ),
];

const SEE_ALSO: &str = "`pping.toml`(5), `tcpdump`(1), `tc-bpf`(8), `capabilities`(7), `systemctl`(1)";

/// Writes the page.
pub(super) fn page() -> String {
    let command = Cli::command();
    let mut page = Page::new("PPING", "1", "User Commands");
    page.section("NAME");
    page.paragraph("pping - continuous passive round-trip times of every flow that passes");
    page.section("SYNOPSIS");
    let measuring = ["-i INTERFACE ... [OPTIONS]", "-r FILE [OPTIONS]", "[--config FILE] [OPTIONS]"];
    page.lines(measuring.map(|form| format!("`pping` {form}")));
    page.lines(commands(&command).iter().map(|((name, arguments), _)| format!("`pping {name}`{arguments}")));
    page.section("DESCRIPTION");
    page.paragraphs(&DESCRIPTION);
    options(&mut page);
    page.section("COMMANDS");
    for ((name, arguments), about) in commands(&command) {
        page.item(vec![bold(name), italic(arguments)], about);
    }
    signals_to_status(&mut page);
    page.section("EXAMPLES");
    for (command, about) in examples() {
        page.item(vec![bold(command)], [about]);
    }
    page.section("SEE ALSO");
    page.paragraph(SEE_ALSO);
    page.render()
}

fn options(page: &mut Page) {
    page.section("OPTIONS");
    page.paragraph(
        "Times have a unit, as in 100ms, 2s or 5m. All but --config and --read can be in a configuration file, and all but \
         --read in the environment: see FILES and ENVIRONMENT.",
    );
    let options = Definition::all();
    let mut heading = "";
    for option in &options {
        if option.heading() != heading {
            heading = option.heading();
            page.subsection(heading);
        }
        let default = match (option.value_name(), option.default().unwrap_or_default().first()) {
            (Some(_), Some(default)) => format!("The default is `{default}`."),
            _ => String::new(),
        };
        page.option(typed(option), option, &default);
    }
    page.subsection("Help");
    page.item(
        vec![bold("-h"), roman(", "), bold("--help")],
        ["Print help: `-h` in short, `--help` in full."],
    );
    page.item(vec![bold("-V"), roman(", "), bold("--version")], ["Print the version."]);
}

fn signals_to_status(page: &mut Page) {
    page.section("SIGNALS");
    for (signals, meaning) in SIGNALS {
        page.item(vec![bold(signals)], [meaning]);
    }
    page.section("ENVIRONMENT");
    page.item(
        vec![bold("PPING_"), italic("OPTION")],
        [
            "Each option but --read can be set by a variable: `PPING_RATE_LIMIT` is --rate-limit. An option on the \
             command line wins over its variable, which wins over the configuration file. An option that takes no value \
             is set by `true` and unset by `false`. Several values are separated by commas. A variable that is empty \
             counts as not set.",
        ],
    );
    page.section("FILES");
    page.item(
        vec![bold(DEFAULT_FILE)],
        [
            "The configuration, see `pping.toml`(5). It is read where neither --interface nor --read is on the command \
             line, which is how a service is started. Another file is read if --config or `PPING_CONFIG` names one.",
        ],
    );
    page.section("EXIT STATUS");
    for (status, meaning) in STATUS {
        page.item(vec![bold(status)], [meaning]);
    }
}

/// What can be done beside measuring: names and arguments, and what is said of them.
fn commands(command: &clap::Command) -> Vec<((String, String), Vec<String>)> {
    let mut found = Vec::new();
    for command in command.get_subcommands() {
        if command.has_subcommands() {
            let inner = commands(command).into_iter();
            found.extend(
                inner.map(|((name, rest), about)| ((format!("{} {name}", command.get_name()), rest), about)),
            );
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
        found.push(((command.get_name().to_owned(), arguments), about));
    }
    found
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
        // What a command does is to its right, or on the next line where there is no room.
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
