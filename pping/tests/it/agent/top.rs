//! `pping top` shows a real pping in a real terminal: tmux provides the terminal and reads its screen.

mod access;
mod alone;
mod tree;

use std::{fs, process::Command};

use pping_lab::{Namespace, Process, Topology, run};

use super::{
    http::LISTEN,
    monitor::{PATIENCE, PPING, endless_ping, interrupt, ok, ping, pping, topology, wait_until, watch},
    web::passwords::USERS,
};

const GROUPS: &str = "prefix,group\n10.11.0.0/16,router\n10.11.2.0/24,customer-\u{202e}7\n10.99.0.0/16,customer-\u{202e}7\n\
                      fd00::/8,six\n";

/// A terminal in tmux, with a shell in it.
struct Terminal {
    /// The name of its tmux server, unique to the test.
    name: String,
}

impl Terminal {
    /// A shell in a terminal of this size, in a namespace.
    fn new(host: &Namespace, size: (u16, u16)) -> Self {
        let terminal = Self { name: format!("pping-{}", host.name()) };
        let shell = format!("exec ip netns exec {} env PS1=ready- sh", host.name());
        let (width, height) = (size.0.to_string(), size.1.to_string());
        terminal.tmux(&["-f/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &shell]);
        wait_until("a prompt", || terminal.screen().contains("ready-"));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        ok(run(Command::new("tmux").args(["-L", &self.name]).args(arguments)))
    }

    /// Clicks on a text on the screen.
    #[track_caller]
    fn click(&self, text: &str) {
        let screen = self.screen();
        let found = screen.lines().zip(1..).find_map(|(line, row)| {
            let before = &line[..line.find(text)?];
            Some((before.chars().count() + 1, row))
        });
        let (column, row) = found.unwrap_or_else(|| panic!("no {text} on {screen}"));
        let pressed_and_released = format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m");
        self.tmux(&["send-keys", "-l", &pressed_and_released]);
    }

    /// True if the program in the terminal receives clicks; otherwise clicks select text.
    fn has_mouse(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{mouse_any_flag}"]).trim() == "1"
    }

    /// Returns the process that runs in the shell.
    fn child(&self) -> String {
        let shell = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        fs::read_to_string(children).unwrap().trim().to_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until a text has left the screen. Keys that follow Escape too soon would be taken as part of its sequence.
    #[track_caller]
    fn wait_without(&self, text: &str) {
        wait_until(&format!("no {text}"), || !self.screen().contains(text));
    }

    /// Waits until a text is on the screen, and returns the screen.
    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        let mut screen = String::new();
        wait_until(text, || {
            screen = self.screen();
            screen.contains(text)
        });
        screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        Command::new("tmux").args(["-L", &self.name, "kill-server"]).output().ok();
    }
}

fn started(router: &Namespace, groups: &std::path::Path) -> Process {
    watch(
        router,
        Topology::WAN,
        &format!("{LISTEN} --rate-limit 0 --format none --groups {}", groups.display()),
    )
}

/// Returns the exit code and the output of `pping top` with these arguments.
fn top(host: &Namespace, arguments: &str) -> (Option<i32>, String) {
    let output = pping(host, &format!("top {arguments}")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn top_shows_groups_and_goes_on_when_a_service_was_restarted() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    fs::write(&groups, GROUPS).unwrap();
    let agent = started(router, &groups);
    let _pings = [
        endless_ping(topology.client(), Topology::SERVER_IPV4),
        endless_ping(topology.client(), Topology::SERVER_IPV6),
    ];
    let terminal = Terminal::new(router, (120, 20));
    terminal.keys(&[&format!("{PPING} top"), "Enter"]);
    let screen = terminal.wait_for("customer-?7");
    assert!(screen.contains("http://127.0.0.1:9464") && screen.contains("icmp-echo "), "{screen}");
    assert!(!screen.contains('\u{202e}'), "{screen}");
    wait_until("round trips of ten milliseconds", || {
        terminal.screen().lines().any(|it| it.contains("beyond") && it.contains("six") && it.contains("10."))
    });
    // The filter, the screen of a group, and the help.
    terminal.keys(&["/", "six", "Enter"]);
    let screen = terminal.wait_for("1 of 2 groups with six");
    assert!(!screen.contains("customer"), "{screen}");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("15 min ago");
    assert!(screen.contains("six  icmp-echo") && screen.contains('█'), "{screen}");
    terminal.keys(&["-"]);
    terminal.wait_for("5 min ago");
    terminal.keys(&["Escape"]);
    terminal.wait_without("5 min ago");
    terminal.keys(&["?"]);
    terminal.wait_for("this help");
    terminal.keys(&["q"]);
    terminal.wait_without("this help");
    panes(&terminal);
    // An address finds the group that it belongs to, and `i` shows the group's prefixes.
    terminal.keys(&["Escape"]);
    terminal.wait_without("with six");
    terminal.keys(&["/", "10.11.2.77", "Enter"]);
    terminal.wait_for("1 of 2 groups with 10.11.2.77");
    // The answer comes after the text of the filter.
    let screen = terminal.wait_for(">customer-?7");
    assert!(!screen.contains("six "), "{screen}");
    terminal.keys(&["i"]);
    let screen = terminal.wait_for("10.11.2.0/24 +1");
    assert!(screen.contains(" prefix ") && !screen.contains("customer-?7"), "{screen}");
    terminal.keys(&["i", "Escape"]);
    terminal.wait_without("with 10.11.2.77");
    // While frozen, the screen does not change.
    terminal.keys(&["Space"]);
    terminal.wait_for("frozen");
    terminal.keys(&["Space"]);
    terminal.wait_without("frozen");

    interrupt(agent);
    terminal.wait_for("no answer for");
    let agent = started(router, &groups);
    terminal.wait_without("no answer for");
    terminal.keys(&["q"]);
    let screen = terminal.wait_for("ready-");
    assert!(!screen.contains("icmp-echo") && !terminal.has_mouse(), "as it was before: {screen}");
    terminal.keys(&["stty -a", "Enter"]);
    let state = terminal.wait_for("echo");
    assert!(state.contains(" icanon") && state.contains(" echo "), "{state}");
    // A signal restores the terminal too.
    for (signal, variables, has_colors) in
        [("TERM", "COLORTERM=truecolor", true), ("HUP", "COLORTERM=truecolor NO_COLOR=1", false)]
    {
        terminal.keys(&[&format!("clear; {variables} {PPING} top; echo code $?"), "Enter"]);
        terminal.wait_for("[1 Groups]");
        terminal.keys(&["3"]);
        terminal.wait_for("samples in 10 s from");
        let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(screen.contains("[38;2;"), has_colors, "{variables}: {screen:?}");
        wait_until("clicks", || terminal.has_mouse());
        ok(run(Command::new("kill").args(["-s", signal, &terminal.child()])));
        let screen = terminal.wait_for("code 0");
        assert!(!screen.contains("3 Heatmap") && !terminal.has_mouse(), "{signal}: {screen}");
    }
    interrupt(agent);
}

/// Visits the panes by keys and by clicks, from a screen of groups.
fn panes(terminal: &Terminal) {
    terminal.keys(&["3"]);
    terminal.wait_for("[3 Heatmap]");
    let screen = terminal.wait_for("samples in 10 s from");
    assert!(screen.contains(">wan0 ") && screen.contains("5 min ago") && screen.contains('█'), "{screen}");
    terminal.keys(&["-"]);
    terminal.wait_for("30 s");
    terminal.keys(&["+", "+"]);
    terminal.wait_for("15 min ago");
    terminal.keys(&["Tab"]);
    let screen = terminal.wait_for("[4 Health]");
    let attached = screen.lines().any(|line| line.starts_with("wan0 ") && line.contains(" up "));
    assert!(attached && screen.contains("the latest figures came"), "{screen}");
    terminal.click("1 Groups");
    terminal.wait_for("[1 Groups]");
    // The group's p50, not the interface's.
    terminal.click("    p50");
    terminal.wait_for("p50▼");
    terminal.click("p50▼");
    terminal.wait_for("p50▲");
    // The second click on a row opens it.
    terminal.click(">six");
    terminal.click(">six");
    terminal.wait_for("samples in");
    terminal.keys(&["Escape"]);
    terminal.wait_for("p50▲");
}

#[test]
fn top_writes_one_screen_as_text_for_a_ticket() {
    let topology = topology();
    let router = topology.router();
    let agent = watch(router, Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.05");
    let mut said = String::new();
    wait_until("all samples", || {
        let (code, text) = top(router, "--once");
        assert_eq!(code, Some(0), "{text}");
        said = text;
        said.lines().any(|line| {
            line.starts_with("icmp-echo beyond")
                && line.split_whitespace().skip(2).step_by(2).take(2).eq([Topology::WAN, "5"])
        })
    });
    assert!(said.starts_with(&format!("{}: in ", Topology::WAN)), "{said}");
    assert!(said.contains("\n1 of 1 groups in the last minute\n"), "{said}");
    interrupt(agent);
}

#[test]
fn top_says_what_is_wrong_and_leaves_the_terminal_alone() {
    let topology = topology();
    let router = topology.router();
    let (code, said) = top(router, "--once");
    assert!(code == Some(1) && said.contains("refused") && said.contains("--listen"), "{code:?} {said}");
    for (arguments, reason) in [
        ("--connect http://127.0.0.1:9464/metrics", "path"),
        ("--connect https://127.0.0.1 --cacert /nowhere", "--cacert /nowhere"),
        ("--interval soon", "--interval"),
    ] {
        let (code, said) = top(router, arguments);
        assert!(code == Some(2) && said.contains(reason), "{arguments}: {code:?} {said}");
    }

    let directory = tempfile::tempdir().unwrap();
    let web = directory.path().join("web.yml");
    fs::write(&web, USERS).unwrap();
    let agent = watch(router, Topology::WAN, &format!("{LISTEN} --web-config {}", web.display()));
    let (code, said) = top(router, "--once --user bob:zwei:Wörter");
    assert!(code == Some(0) && said.contains("groups in the last minute"), "{code:?} {said}");
    for user in ["", "--user bob:wrong"] {
        let (code, said) = top(router, &format!("--once {user}"));
        assert!(code == Some(2) && said.contains("--user NAME:PASSWORD"), "{code:?} {said}");
    }
    // There is no terminal, or only a dumb one.
    interrupt(agent);
    let agent = watch(router, Topology::WAN, LISTEN);
    let (code, said) = top(router, "");
    assert!(code == Some(2) && said.contains("--once"), "{code:?} {said}");
    let terminal = Terminal::new(router, (80, 24));
    terminal.keys(&[&format!("TERM=dumb {PPING} top; echo code $?"), "Enter"]);
    let screen = terminal.wait_for("code 2");
    assert!(screen.contains("needs a terminal"), "{screen}");
    interrupt(agent);

    // Another program listens at the port.
    let mut python = router.command("python3");
    python
        .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "9464", "--directory"])
        .arg(directory.path());
    let mut other = ok(Process::spawn(python));
    ok(other.wait_for_output("Serving HTTP", PATIENCE));
    let (code, said) = top(router, "--once");
    assert!(code == Some(1) && said.contains("no /api/v1"), "{code:?} {said}");
}
