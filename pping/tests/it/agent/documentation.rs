//! Everything generated from the list of options: example configuration, man pages and completions.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use super::monitor::{PPING, repository, tool};

#[track_caller]
fn generate(page: &str) -> String {
    let output = Command::new(PPING).args(["generate", page]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{page}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All options in pping's help.
fn options() -> BTreeSet<String> {
    let output = Command::new(PPING).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let names = lines.filter_map(|line| line.split([' ', '.']).find_map(|word| word.strip_prefix("--")));
    let options: BTreeSet<String> = names.map(ToOwned::to_owned).collect();
    assert!(options.len() > 25, "{options:?}");
    options
}

/// The options that a configuration file can set.
fn keys() -> BTreeSet<String> {
    let mut keys = options();
    for option in ["config", "join", "read", "help", "version"] {
        assert!(keys.remove(option), "no --{option}");
    }
    keys
}

/// Runs `pping config check` on a file with this text: success, and the message.
fn check(directory: &Path, text: &str) -> (bool, String) {
    let file = directory.join("pping.toml");
    fs::write(&file, text).unwrap();
    tool(PPING, &["config", "check", file.to_str().unwrap()])
}

#[test]
fn the_example_is_what_generate_config_writes() {
    let example = fs::read_to_string(repository("deploy/pping.toml")).unwrap();
    assert_eq!(example, generate("config"), "run `pping generate config >deploy/pping.toml`");
}

#[test]
fn example_file_is_complete_and_valid() {
    let example = generate("config");
    let directory = tempfile::tempdir().unwrap();
    let (fine, said) = check(directory.path(), &example);
    assert!(fine && said.ends_with("pping.toml: fine\n") && said.lines().count() == 1, "{said}");

    let groups = directory.path().join("groups.csv");
    fs::write(&groups, "prefix,group,site,ap\n192.0.2.0/24,office,berlin,ap-1\n").unwrap();
    let networks = directory.path().join("asn.csv");
    fs::write(&networks, "network,asn,name\n198.51.100.0/24,64500,Example\n").unwrap();
    let quality = repository("deploy/quality.toml");
    let uncommented: Vec<&str> = example
        .lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(char::is_lowercase)).unwrap_or(line)
        })
        .collect();
    let uncommented = uncommented.join("\n").replace("/etc/pping/groups.csv", groups.to_str().unwrap());
    let uncommented = uncommented.replace("/var/lib/GeoIP/GeoLite2-ASN.mmdb", networks.to_str().unwrap());
    let uncommented = uncommented.replace("/etc/pping/quality.toml", quality.to_str().unwrap());
    let is_key = |line: &&str| line.starts_with(char::is_lowercase);
    let set: Vec<&str> =
        uncommented.lines().filter(is_key).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(set.len(), keys().len(), "an option is there twice");
    assert_eq!(set.into_iter().map(ToOwned::to_owned).collect::<BTreeSet<_>>(), keys());
    let (fine, said) = check(directory.path(), &uncommented);
    assert!(fine && said.lines().any(|line| line.ends_with("pping.toml: fine")), "{said}");
}

/// Renders a man page as a reader sees it, after groff has found no fault in it.
#[track_caller]
fn rendered(page: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(page);
    fs::write(&file, generate(page)).unwrap();
    let file = file.to_str().unwrap();
    // With `-z`, groff prints only warnings.
    assert_eq!(tool("groff", &["-man", "-Tutf8", "-ww", "-z", file]), (true, String::new()));
    let (shown, text) = tool("env", &["LC_ALL=C.UTF-8", "MANWIDTH=100", "man", "--warnings", "-l", file]);
    assert!(shown, "{text}");
    text
}

#[track_caller]
fn assert_sections(text: &str, sections: &[&str]) {
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with(char::is_uppercase)).collect();
    for section in sections {
        assert!(found.contains(section), "no section {section} in {found:?}");
    }
}

#[test]
fn the_man_page_has_every_option_and_the_usual_sections() {
    let text = rendered("man");
    assert_sections(
        &text,
        &[
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "COMMANDS",
            "SIGNALS",
            "ENVIRONMENT",
            "FILES",
            "EXIT STATUS",
            "EXAMPLES",
            "SEE ALSO",
        ],
    );
    for option in options() {
        let is_term = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().take(2).collect();
            words.iter().any(|word| *word == format!("--{option}")) && line.trim_start().starts_with('-')
        };
        assert!(text.lines().any(is_term), "no --{option} in {text}");
    }
    for part in [
        "config check [FILE]",
        "unpin DIR",
        "cleanup [-i INTERFACE]...",
        "SIGHUP",
        "pping.toml(5)",
        "not port 22 | pping -r -",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn file_man_page_has_every_key() {
    let text = rendered("man-toml");
    assert_sections(
        &text,
        &["NAME", "DESCRIPTION", "VALUES", "OPTIONS", "RELOADING", "EXAMPLE", "FILES", "SEE ALSO"],
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for key in keys() {
        let (_, after) =
            words.split_once(&format!(" {key} = ")).unwrap_or_else(|| panic!("no {key} in {text}"));
        let variable = format!("In the environment: PPING_{}.", key.to_uppercase().replace('-', "_"));
        let (_, after) = after.split_once(&variable).unwrap_or_else(|| panic!("no {variable}"));
        let reload = after.trim_start();
        assert!(reload.starts_with("A reload") || reload.starts_with("A change"), "{key}: {reload:.40}");
    }
}

#[test]
fn the_page_of_the_output_has_every_format() {
    let output = Command::new(PPING).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, of_format) = help.split_once("--format <").unwrap();
    let lines = of_format.lines().skip(1).map(str::trim_start).take_while(|line| !line.starts_with("--"));
    let formats: Vec<&str> =
        lines.filter_map(|line| line.strip_prefix("- ")?.split_once(':')).map(|(name, _)| name).collect();
    assert!(formats.len() > 4, "{formats:?}");
    let page = fs::read_to_string(repository("docs/output.md")).unwrap();
    for format in formats {
        assert!(page.contains(&format!("\n| `{format}` |")), "docs/output.md has no {format}");
    }
}

#[test]
fn completions_know_every_option_and_are_valid_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let text = generate(&format!("complete-{shell}"));
        for option in options() {
            // fish defines completions without the dashes.
            let name = if shell == "fish" { format!("-l {option}") } else { format!("--{option}") };
            assert!(text.contains(&name), "no {name} for {shell}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.bash");
    fs::write(&file, generate("complete-bash")).unwrap();
    let script = format!(
        ". {} && COMP_WORDS=(pping --rate-) COMP_CWORD=1 && _pping pping --rate- && echo $COMPREPLY",
        file.display()
    );
    assert_eq!(tool("bash", &["-c", &script]), (true, "--rate-limit\n".to_owned()));
}
