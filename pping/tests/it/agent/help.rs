//! `--help`, `-h` and `--version` name every option and the version.

use std::process::Command;

use super::monitor::PPING;

fn help(option: &str) -> String {
    let output = Command::new(PPING).arg(option).output().unwrap();
    assert!(output.status.success(), "{option}: {}", output.status);
    assert!(output.stderr.is_empty(), "{option} writes to standard error");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_long_help_groups_every_option_and_has_examples() {
    let help = help("--help");
    let groups = [
        ("Source:", &["-i, --interface", "-r, --read", "--ingress", "--max-flows"][..]),
        ("Measuring:", &["--include-local", "--rate-limit", "--rtt-rate", "--rtt-type"]),
        ("Output:", &["--format", "-w, --write", "--listen"]),
        ("Service:", &["--config", "--pin"]),
        ("Diagnosis:", &["-v, --verbose", "--bpf-log"]),
    ];
    for (title, options) in groups {
        let (_, group) = help.split_once(&format!("\n{title}\n")).unwrap_or_else(|| panic!("no {title}"));
        // The next line without indentation is the title of the next group.
        let group: Vec<&str> =
            group.lines().take_while(|line| line.is_empty() || line.starts_with(' ')).collect();
        for option in options {
            assert!(group.iter().any(|line| line.trim_start().starts_with(option)), "no {option} in {title}");
        }
    }
    let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
    for part in [
        "pping -i eth0",
        "pping -r trace.pcapng",
        "--rate-limit 0",
        "--format jsonl",
        "--listen 127.0.0.1:9464",
    ] {
        assert!(examples.contains(part), "no example with {part}: {examples}");
    }
}

#[test]
fn the_short_help_is_short_and_names_every_option_too() {
    let (short, long) = (help("-h"), help("--help"));
    assert!(short.lines().count() * 2 < long.lines().count(), "{short}");
    let options = |help: &str| -> Vec<String> {
        let words = help.lines().filter(|line| line.trim_start().starts_with('-'));
        let names = words.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
        names.map(|name| name.trim_end_matches([',', '.']).to_owned()).collect()
    };
    assert_eq!(options(&short), options(&long));
    assert!(options(&short).contains(&"--rate-limit".to_owned()), "{:?}", options(&short));
    assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
}

#[test]
fn the_version_names_package_and_commit() {
    let expected = format!("pping {} ({})\n", env!("CARGO_PKG_VERSION"), env!("PPING_REVISION"));
    assert_eq!(help("--version"), expected);
    assert_eq!(help("-V"), help("--version"));
}

#[test]
fn help_of_a_command_is_found_by_its_name() {
    let of = |arguments: &[&str]| {
        let output = Command::new(PPING).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(of(&["help"]), help("--help"));
    assert_eq!(of(&["help", "groups", "add"]), of(&["groups", "add", "--help"]));
    assert!(of(&["help", "groups", "add"]).contains("--column"));
    let unknown = Command::new(PPING).args(["help", "nonsense"]).output().unwrap();
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && said.contains("nonsense"), "{said}");
    // The man page has options that only this command has.
    let page = of(&["generate", "man"]);
    assert!(page.contains("column NAME=VALUE") || page.contains("column NAME\\=VALUE"), "{page}");
}
