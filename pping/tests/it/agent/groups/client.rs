//! A client of the groups socket.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use pping_lab::{Process, Signal, Topology};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::{
    http::{LISTEN, scrape},
    monitor::{ENDING, PATIENCE, ok, pping, tool, watch_with},
};

/// A client with its own connection.
pub(super) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    pub(super) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next answer; `None` at the end of the connection.
    pub(super) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.stream.read_line(&mut line).unwrap_or(0);
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(super) fn ask(&mut self, request: &Value) -> Value {
        self.send(format!("{request}\n").as_bytes());
        self.next().expect("an answer")
    }

    #[track_caller]
    pub(super) fn add(&mut self, prefix: &str, label: &str) -> Value {
        let answer = self.ask(&json!({"op": "add", "prefix": prefix, "label": label}));
        assert_eq!(answer["ok"], true, "{answer}");
        answer
    }

    #[track_caller]
    pub(super) fn remove(&mut self, prefix: &str) -> Value {
        let answer = self.ask(&json!({"op": "remove", "prefix": prefix}));
        assert_eq!(answer["ok"], true, "{answer}");
        answer
    }

    /// The prefixes that count, with their labels and sources.
    pub(super) fn list(&mut self) -> Vec<(String, String, String)> {
        self.send(b"{\"op\":\"list\"}\n");
        let mut listed = Vec::new();
        loop {
            let line = self.next().expect("an answer");
            if line["ok"] == true {
                return listed;
            }
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            if line["current"] == true && !line["prefix"].is_null() {
                listed.push((text("prefix"), text("label"), text("source")));
            }
        }
    }
}

/// A pping at the router, with a groups socket and perhaps a groups file.
pub(super) struct Agent {
    pub(super) topology: Topology,
    pub(super) directory: TempDir,
    pub(super) process: Process,
}

/// The number of a kind of map (`enum bpf_map_type` of linux/bpf.h).
const LPM_TRIE: u64 = 11;

/// What most tests need.
pub(super) const OPTIONS: &str = "--format none";

impl Agent {
    /// Starts pping with the text of a groups file, if there is one.
    pub(super) fn new(file: Option<&str>, options: &str) -> Self {
        let (topology, directory) = (crate::agent::monitor::topology(), tempfile::tempdir().unwrap());
        if let Some(text) = file {
            fs::write(directory.path().join("groups.csv"), text).unwrap();
        }
        let process = start(&topology, directory.path(), options);
        Self { topology, directory, process }
    }

    /// Starts it again, after it has ended.
    pub(super) fn restart(&mut self, options: &str) {
        self.process = start(&self.topology, self.directory.path(), options);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path("groups.sock")
    }

    pub(super) fn connect(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// The samples of a group so far. Replies come in by the interface that is watched.
    pub(super) fn samples_of(&self, group: &str) -> u64 {
        let labels = [("group", group), ("method", "icmp-echo"), ("matched", "ingress")];
        let name = "pping_rtt_seconds_count";
        scrape(self.topology.router()).sum(name, &labels).unwrap_or(0.0) as u64
    }

    /// The number of prefixes that the kernel has.
    pub(super) fn in_kernel(&self) -> usize {
        let id = self.map_of_labels();
        let (dumped, entries) = tool("bpftool", &["-j", "map", "dump", "id", &id]);
        assert!(dumped, "{entries}");
        serde_json::from_str::<Vec<Value>>(&entries).unwrap().len()
    }

    /// The id of the map of labels: of the maps of its kind it has the most room.
    fn map_of_labels(&self) -> String {
        let descriptors = fs::read_dir(format!("/proc/{}/fdinfo", self.process.id())).unwrap();
        let info = descriptors.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
        let number = |info: &str, key: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse::<u64>().ok())
        };
        let tries = info.filter(|info| number(info, "map_type") == Some(LPM_TRIE));
        let largest = tries.max_by_key(|info| number(info, "max_entries"));
        number(&largest.expect("it has the map open"), "map_id").unwrap().to_string()
    }

    /// The columns that a source gives a label, and those that count, as `pping groups list` shows them.
    #[track_caller]
    pub(super) fn columns(&self, label: &str, source: &str) -> (String, String) {
        let (listed, said) = self.command(&["list", label, "--source", source]);
        assert!(listed, "{said}");
        let row = said.lines().nth(1).unwrap_or_else(|| panic!("nothing of {label} from {source}: {said}"));
        let fields: Vec<&str> = row.split(',').collect();
        (fields[4].to_owned(), fields[5].to_owned())
    }

    /// Kills pping.
    pub(super) fn kill(&mut self) {
        ok(self.process.signal(Signal::SIGKILL));
        ok(self.process.wait_timeout(ENDING));
    }

    /// Runs `pping groups`. Returns whether it succeeded, and what it wrote.
    pub(super) fn command(&self, arguments: &[&str]) -> (bool, String) {
        let socket = self.socket();
        let socket = ["--socket", socket.to_str().unwrap()];
        tool(crate::agent::monitor::PPING, &[&["groups"], arguments, &socket].concat())
    }
}

fn start(topology: &Topology, directory: &Path, options: &str) -> Process {
    let labels = if options.contains("--prometheus-groups") { "" } else { "--prometheus-groups 1000" };
    let mut arguments = format!(
        "-v -i {} {LISTEN} --rate-limit 0 {labels} {options} --groups-socket {directory}/groups.sock \
         --groups-state {directory}/journal",
        Topology::WAN,
        directory = directory.display()
    );
    if directory.join("groups.csv").exists() {
        arguments.extend([" --groups ", directory.join("groups.csv").to_str().unwrap()]);
    }
    watch_with(pping(topology.router(), &arguments), Topology::WAN)
}

/// How long something that is not to happen is waited for.
pub(super) const SOON: Duration = Duration::from_millis(500);
