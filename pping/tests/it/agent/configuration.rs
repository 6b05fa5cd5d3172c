//! Where a value comes from: file, environment or command line, and which one wins.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use tempfile::TempDir;

use super::{
    host::Host,
    monitor::{PPING, interrupt, watch_with},
};

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pping.toml");
        fs::write(&path, text).unwrap();
        Self { _directory: directory, path }
    }

    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn pping(&self, arguments: &str) -> Command {
        let mut command = pping(arguments);
        command.arg("--config").arg(&self.path);
        command
    }

    /// Runs `pping config check`: exit code, standard output and standard error.
    fn check(&self) -> (Option<i32>, String, String) {
        said(&pping("config check").arg(&self.path).output().unwrap())
    }
}

fn pping(arguments: &str) -> Command {
    let mut command = Command::new(PPING);
    command.args(arguments.split_whitespace());
    command
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Returns the error of `command`, which must be refused, without the final newline.
#[track_caller]
fn refusal(command: &mut Command) -> String {
    let (code, stdout, stderr) = said(&command.output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    stderr.trim_end().to_owned()
}

/// The line of an option in the output of `pping config show`, with single spaces.
#[track_caller]
fn shown_option(command: &mut Command, key: &str) -> String {
    let (code, stdout, stderr) = said(&command.output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = stdout.lines().filter(|line| line.trim_start_matches("# ").starts_with(key));
    words(lines.next().unwrap_or_else(|| panic!("no {key} in {stdout}")))
}

#[test]
fn precedence_is_command_line_environment_file_default() {
    let file = File::new("# mine\nrate-limit = \"1s\"\nmax-flows = 20_000\n");
    let at = format!("# {}:2", file.name());
    assert_eq!(
        shown_option(&mut pping("config show -i eth0"), "rate-limit"),
        "rate-limit = \"100ms\" # default"
    );
    let mut command = file.pping("config show");
    assert_eq!(shown_option(&mut command, "rate-limit"), format!("rate-limit = \"1s\" {at}"));
    command.env("PPING_RATE_LIMIT", "2s");
    assert_eq!(shown_option(&mut command, "rate-limit"), "rate-limit = \"2s\" # PPING_RATE_LIMIT");
    command.args(["--rate-limit", "3s"]);
    assert_eq!(shown_option(&mut command, "rate-limit"), "rate-limit = \"3s\" # command line");
    // Options that the flags leave alone keep their values.
    assert_eq!(shown_option(&mut command, "max-flows"), format!("max-flows = 20000 # {}:3", file.name()));
}

#[test]
fn each_kind_of_value_can_be_in_the_environment() {
    let mut command = pping("config show");
    for (variable, value, line) in [
        ("PPING_INTERFACE", "eth0, ppp*", "interface = [\"eth0\", \"ppp*\"] # PPING_INTERFACE"),
        ("PPING_WAIT", "true", "wait = true # PPING_WAIT"),
        ("PPING_INCLUDE_LOCAL", "1", "include-local = true # PPING_INCLUDE_LOCAL"),
        ("PPING_BPF_LOG", "0", "bpf-log = false # PPING_BPF_LOG"),
        ("PPING_VERBOSE", "2", "verbose = 2 # PPING_VERBOSE"),
        ("PPING_DECAP", "gre,vxlan", "decap = [\"gre\", \"vxlan\"] # PPING_DECAP"),
        ("PPING_METHODS", "tcp-seq, dns", "methods = [\"tcp-seq\", \"dns\"] # PPING_METHODS"),
        ("PPING_DNS_PORTS", "53,5353", "dns-ports = [53, 5353] # PPING_DNS_PORTS"),
        ("PPING_RTT_RATE", "0.5", "rtt-rate = 0.5 # PPING_RTT_RATE"),
        ("PPING_LISTEN", "[::1]:9464", "listen = \"[::1]:9464\" # PPING_LISTEN"),
        ("PPING_GROUPS", "", "# groups is not set # default"),
    ] {
        command.env(variable, value);
        assert_eq!(
            shown_option(&mut command, line.trim_start_matches("# ").split(' ').next().unwrap()),
            line
        );
    }
}

#[test]
fn a_variable_can_switch_off_what_the_file_switches_on() {
    let file = File::new("wait = true\nexclude = [\"192.0.2.0/24\"]\n");
    let mut command = file.pping("config show");
    command.env("PPING_WAIT", "false").args(["--exclude", "2001:db8::/32"]);
    assert_eq!(shown_option(&mut command, "wait"), "wait = false # PPING_WAIT");
    // Lists are not merged: the whole list comes from one source.
    assert_eq!(shown_option(&mut command, "exclude"), "exclude = [\"2001:db8::/32\"] # command line");
}

#[test]
fn config_show_prints_a_file_that_means_the_same() {
    let arguments =
        "config show -i eth0 -i ppp* --exclude 192.0.2.0/24 --rtt-rate 2 -vv --aggregate 10s --wait";
    let (_, stdout, _) = said(&pping(arguments).output().unwrap());
    let file = File::new(&stdout);
    assert_eq!(file.check().0, Some(0), "{stdout}");
    let (_, again, _) = said(&file.pping("config show").output().unwrap());
    let assignments = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split("   # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(assignments(&stdout), assignments(&again));
    assert!(assignments(&again).contains(&"rtt-rate = 2".to_owned()), "{again}");
}

#[test]
fn all_errors_in_a_file_are_reported_with_line_and_column() {
    let file = File::new(concat!(
        "interface = [\"eth0\", \"eth0/1\"]\n",
        "  rate-limit = \"fast\"\n",
        "rate_limit = \"1s\"\n",
        "read = \"trace.pcap\"\n",
        "config = \"other.toml\"\n",
        "listen = true\n",
        "max-flows = 0\n",
        "wait = \"yes\"\n",
        "decap = [\"gre\", \"l2tp\"]\n",
        "methods = []\n",
        "dns-ports = [53, 0]\n",
        "format = jsonl\n",
        "profile = \"tiny\"\n",
        "[aggregation]\n",
    ));
    let (code, stdout, stderr) = file.check();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let errors = [
        ":1:22: interface = \"eth0/1\": an interface name has 1 to 15 characters",
        ":2:16: rate-limit = \"fast\": give a number with its unit, like 100ms or 2s, or 0",
        ":3:1: `rate_limit` is not known; did you mean rate-limit?",
        ":4:1: read cannot be in a file: a capture is read once",
        ":5:1: config cannot be in a file: it names the file itself",
        ":6:10: listen = true: put the value in quotation marks",
        ":7:13: max-flows = 0: give a number from 1 to 16777216",
        ":8:8: wait = \"yes\": give true or false",
        ":9:17: decap = \"l2tp\": give one of ipip, gre, vxlan, geneve, gtp-u, erspan, tzsp",
        ":10:11: methods = []: it is empty; give a value, or leave the option out",
        ":11:18: dns-ports = 0: give a port from 1 to 65535",
        ":12:10: string values must be quoted",
        ":13:11: profile = \"tiny\": give one of default, small",
        ":14:2: `aggregation` is a section, but options stand without sections",
    ];
    assert_eq!(stderr.lines().count(), errors.len(), "{stderr}");
    for (line, error) in stderr.lines().zip(errors) {
        let expected = format!("{}{error}", file.name());
        assert!(line.trim_start_matches("pping: ").starts_with(&expected), "{line}\nis not {expected}");
    }
    // A run reports the same errors and does not start.
    assert_eq!(refusal(&mut file.pping("")), stderr.trim_end());
}

#[test]
fn conflicting_options_are_reported_where_they_are_set() {
    for (text, expected) in [
        ("group-by = [\"both\"]", ":1:12: group-by = [\"both\"]: say how long the prefixes are"),
        ("aggregate = \"1s\"\nformat = \"ppviz\"", ":2:10: format = \"ppviz\": it shows samples only"),
        (
            "methods = [\"tcp-ts\"]\ntcp-method = \"both\"",
            ":2:14: tcp-method = \"both\": it needs both tcp-ts and tcp-seq among --methods",
        ),
        ("web-config = \"web.yml\"", ":1:14: web-config = \"web.yml\": nothing is served without --listen"),
    ] {
        let file = File::new(&format!("{text}\n"));
        let expected = format!("pping: {}{expected}", file.name());
        for message in [file.check().2, refusal(&mut file.pping("-i eth0"))] {
            assert!(message.starts_with(&expected), "{message}\nis not {expected}");
        }
    }
    let message = refusal(pping("-i eth0").env("PPING_WEB_CONFIG", "web.yml"));
    assert!(message.starts_with("pping: PPING_WEB_CONFIG=web.yml: nothing is served"), "{message}");
}

#[test]
fn a_wrong_variable_is_named() {
    for (variable, value, reason) in [
        ("PPING_RATE_LIMIT", "fast", "give a number with its unit, like 100ms or 2s, or 0"),
        ("PPING_WAIT", "yes", "give true or false"),
        ("PPING_READ", "trace.pcap", "a capture is read once; give it with -r on the command line"),
    ] {
        let message = refusal(pping("-i eth0").env(variable, value));
        assert_eq!(message, format!("pping: {variable}={value}: {reason}"));
    }
    let message = refusal(pping("-i eth0").env("PPING_DECAP", "gre,l2tp"));
    assert_eq!(message, "pping: PPING_DECAP=l2tp: give one of ipip, gre, vxlan, geneve, gtp-u, erspan, tzsp");
    let (_, _, stderr) = said(&pping("config show").env("PPING_RATELIMIT", "1s").output().unwrap());
    assert!(
        stderr.contains("PPING_RATELIMIT is not known") && stderr.contains("PPING_RATE_LIMIT?"),
        "{stderr}"
    );
}

#[test]
fn a_named_groups_file_is_checked_too() {
    let groups = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    let name = groups.path().to_str().unwrap();
    let file = File::new(&format!("interface = \"eth0\"\ngroups = \"{name}\"\n"));
    fs::write(groups.path(), "192.0.2.0/24,office\n").unwrap();
    assert_eq!(file.check(), (Some(0), format!("{}: fine\n", file.name()), String::new()));
    fs::write(groups.path(), "192.0.2.0/24,office\n192.0.2.1/24,home\n").unwrap();
    let (code, _, stderr) = file.check();
    let expected = format!("pping: {}:2:10: groups = \"{name}\": {name}:2:1: ", file.name());
    assert!(code == Some(2) && stderr.starts_with(&expected), "{stderr}");
}

#[test]
fn unverifiable_checks_are_reported_as_unknown() {
    let (code, stdout, stderr) =
        File::new("listen = \"127.0.0.1:9464\"\nweb-config = \"/nowhere/web.yml\"\n").check();
    assert!(code == Some(0) && stdout.ends_with("pping.toml: fine\n"), "{stdout}");
    for part in [
        "pping: warning: ",
        "no `interface`",
        "pping.toml:2:14: web-config = \"/nowhere/web.yml\": No such file",
    ] {
        assert!(stderr.contains(part), "no {part} in {stderr}");
    }
}

#[test]
fn a_capture_that_cannot_be_opened_is_named() {
    let message = refusal(&mut pping("-i eth0 --config /nowhere/pping.toml"));
    assert!(message.starts_with("pping: configuration file /nowhere/pping.toml: No such file"), "{message}");
    let message = refusal(pping("-i eth0").env("PPING_CONFIG", "/nowhere/pping.toml"));
    assert!(message.contains("/nowhere/pping.toml: No such file"), "{message}");
    let message = refusal(&mut pping("config check /nowhere/pping.toml"));
    assert!(message.contains("pping generate config"), "{message}");
}

#[test]
fn only_regular_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for arguments in [
        format!("config check {pipe}"),
        format!("-i eth0 --config {pipe}"),
        format!("-r /dev/null --groups {pipe}"),
        format!("-r /dev/null --aggregate 1s --quality {pipe}"),
        format!("-i lo --otlp http://127.0.0.1:4318 --otlp-headers {pipe}"),
        format!("-i lo --listen 127.0.0.1:0 --web-config {pipe}"),
        format!("config check {}", directory.path().display()),
    ] {
        let message = refusal(&mut pping(&arguments));
        assert!(message.contains("not a regular file"), "{arguments}: {message}");
    }
}

#[test]
fn an_error_found_later_names_its_origin_too() {
    let (host, file) = (Host::new(), File::new("interface = [\"eht0\"]\n"));
    let mut command = host.namespace.command(PPING);
    command.arg("--config").arg(&file.path);
    let message = refusal(&mut command);
    assert!(message.contains("--interface eht0") && message.contains("eth0?"), "{message}");
    assert!(message.ends_with(&format!("(it is set by {}:1)", file.name())), "{message}");
}

#[test]
fn a_file_alone_is_enough_to_watch() {
    let host = Host::new();
    let file = File::new("interface = [\"eth0\"]\nverbose = 1\nformat = \"json\"\n");
    let mut command = host.namespace.command(PPING);
    command.arg("--config").arg(&file.path);
    // pping names the file only with `-v`.
    let records = interrupt(watch_with(command, Host::ETH));
    assert!(records.starts_with('[') && records.trim_end().ends_with(']'), "{records}");
}

/// Runs pping in a separate mount namespace, in which `file` is `/etc/pping/pping.toml`.
fn as_service(file: &File, arguments: &str) -> Command {
    let script = "mount -t tmpfs none /etc && mkdir /etc/pping && cat >/etc/pping/pping.toml <\"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh", file.name(), PPING])
        .args(arguments.split_whitespace());
    command
}

#[test]
fn service_file_is_read_without_interface_or_capture() {
    let file = File::new("interface = [\"ppp*\"]\nrate-limit = \"5s\"\n");
    let from_file = "rate-limit = \"5s\" # /etc/pping/pping.toml:2";
    assert_eq!(shown_option(&mut as_service(&file, "config show"), "rate-limit"), from_file);
    let mut command = as_service(&file, "config show");
    command.env("PPING_INTERFACE", "eth0");
    assert_eq!(shown_option(&mut command, "rate-limit"), from_file);
    assert_eq!(shown_option(&mut command, "interface"), "interface = [\"eth0\"] # PPING_INTERFACE");
    // An interface or a capture on the command line is a run by hand, which ignores the file.
    for (arguments, default) in [("config show -i eth0", "100ms"), ("config show -r trace.pcap", "0")] {
        let shown = shown_option(&mut as_service(&file, arguments), "rate-limit");
        assert_eq!(shown, format!("rate-limit = \"{default}\" # default"));
    }
    let (code, stdout, stderr) = said(&as_service(&file, "config check").output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(0), "/etc/pping/pping.toml: fine\n"), "{stderr}");
    let message = refusal(&mut as_service(&File::new("rate-limit = \"5\"\n"), ""));
    assert!(message.starts_with("pping: /etc/pping/pping.toml:1:14: rate-limit = \"5\": "), "{message}");
}

#[test]
fn without_an_interface_the_error_names_every_way_to_give_one() {
    for message in [refusal(&mut as_service(&File::new(""), "")), refusal(&mut pping(""))] {
        for part in ["--interface", "--read", "PPING_INTERFACE", "/etc/pping/pping.toml"] {
            assert!(message.contains(part), "no {part} in {message}");
        }
    }
}
