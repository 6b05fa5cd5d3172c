//! pping.toml(5).

use roff::bold;

use super::page::{Page, written};
use crate::config::{DEFAULT_FILE, definition::Definition};

const DESCRIPTION: [&str; 4] = [
    "The configuration of `pping`(1) is a TOML file. Each of its lines sets an option, which is named as on the command \
     line, without the two dashes. There are no sections.",
    "An option on the command line wins over the same in the environment (`PPING_RATE_LIMIT` for `rate-limit`), that over \
     the file, and the file over the default. A list is taken whole from one of them.",
    "The file that --config or `PPING_CONFIG` names is always read. Where none is named, /etc/pping/pping.toml is read if \
     it is there, unless --interface or --read is on the command line: that is a run by hand, which has no business with \
     what a service serves and writes.",
    "Whoever reads a capture with --read does without those options that are about interfaces, metrics and kernel \
     programs, whatever the file says of them.",
];

const VALUES: [(&str, &str); 4] = [
    ("Texts", "Everything is in quotation marks but numbers, `true` and `false`."),
    (
        "Times",
        "A number and its unit, together in quotation marks: \"100ms\", \"2s\", \"5m\", \"1h 30m\". Where it can be \
         switched off, 0 does that.",
    ),
    ("Switches", "Options without a value on the command line are `true` or `false` here."),
    (
        "Lists",
        "Options that can be given several times have a list of texts or numbers. One without brackets does as well.",
    ),
];

const RELOADING: [&str; 2] = [
    "`systemctl reload pping`, or SIGHUP, has pping read the file again. Options that are said to change do so without \
     missing a packet. Of the others that are different, the log names each; they take a restart, and until then stay as \
     they are.",
    "A file with a mistake in it changes nothing. The log says what is wrong, with line and column, as `pping config \
     check` does beforehand.",
];

/// Writes the page.
pub(super) fn page() -> String {
    let mut page = Page::new("PPING.TOML", "5", "File Formats");
    page.section("NAME");
    page.paragraph("pping.toml - configuration of pping");
    page.section("DESCRIPTION");
    page.paragraphs(&DESCRIPTION);
    page.section("VALUES");
    for (kind, meaning) in VALUES {
        page.item(vec![bold(kind)], [meaning]);
    }
    options(&mut page);
    page.section("RELOADING");
    page.paragraphs(&RELOADING);
    page.section("EXAMPLE");
    page.paragraph("A service that serves metrics of two interfaces, by customer:");
    page.literal(EXAMPLE);
    page.paragraph("`pping generate config` writes a file in which every option is explained.");
    page.section("FILES");
    page.item(vec![bold(DEFAULT_FILE)], ["The configuration of the service."]);
    page.section("SEE ALSO");
    page.paragraph("`pping`(1), `systemctl`(1)");
    page.render()
}

const EXAMPLE: &str = "\
interface = [\"eth0\", \"ppp*\"]
wait = true
listen = \"127.0.0.1:9464\"
format = \"none\"
groups = \"/etc/pping/customers.csv\"
rate-limit = \"1s\"
";

fn options(page: &mut Page) {
    page.section("OPTIONS");
    let mut heading = String::new();
    for option in Definition::all().iter().filter(|option| option.is_for_files()) {
        if option.heading() != heading {
            option.heading().clone_into(&mut heading);
            page.subsection(&heading);
        }
        page.option(written(option), option, &more(option));
    }
}

/// What there is to say of an option beside what it means.
fn more(option: &Definition) -> String {
    let default = match option.default() {
        Some(default) if !default.is_empty() => {
            format!("The default is `{}`.", option.written(&default))
        }
        _ => format!("It is not set by default. An example: `{}`.", option.example()),
    };
    let reload = option.on_reload();
    format!("{default} In the environment: `{}`. {reload}", option.variable())
}
