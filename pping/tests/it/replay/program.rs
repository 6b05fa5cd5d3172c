//! Runs pping on a capture.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// How long something may take on a busy machine before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the command `pping` with a line of arguments. No argument may contain a space.
pub(super) fn pping(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pping"));
    command.args(arguments.split_whitespace());
    command
}

/// A file that is deleted on drop.
pub(super) struct Temporary {
    _directory: TempDir,
    pub(super) path: PathBuf,
}

impl Temporary {
    pub(super) fn new(name: &str, bytes: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        Self { _directory: directory, path }
    }
}

/// Runs pping on a capture in a file, with more arguments.
pub(super) fn read(capture: &[u8], arguments: &str) -> Output {
    let file = Temporary::new("capture", capture);
    pping(&format!("-r {} {arguments}", file.path.display())).output().unwrap()
}

/// Returns the samples among the records of a successful run.
#[track_caller]
pub(super) fn samples(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    samples_so_far(output)
}

/// Returns the samples among the records of any run.
pub(super) fn samples_so_far(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn: {text}");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record.get("rtt").is_some()).collect()
}

/// Returns the RTTs of samples, in ns.
pub(super) fn rtts(samples: &[Value]) -> Vec<u64> {
    samples.iter().map(|sample| sample["rtt"].as_u64().unwrap()).collect()
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that a run ended with `code` and a message that contains all of `parts`.
#[track_caller]
pub(super) fn assert_fails(output: &Output, code: i32, parts: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

/// A pping that reads its capture from a pipe; killed on drop.
pub(super) struct Reader {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Temporary,
}

impl Reader {
    pub(super) fn start(arguments: &str) -> Self {
        let output = Temporary::new("records", b"");
        let mut command = pping(&format!("-r - {arguments}"));
        command.stdin(Stdio::piped()).stdout(fs::File::create(&output.path).unwrap()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin, output }
    }

    /// Writes to the pipe, which pping may have closed.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).ok();
    }

    /// Returns what pping has written to standard output so far.
    pub(super) fn written(&self) -> String {
        fs::read_to_string(&self.output.path).unwrap()
    }

    /// Returns pping's peak memory so far, in bytes.
    pub(super) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap_or_else(|| panic!("it has ended: {status}"));
        kilobytes.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for pping to end without closing the pipe. Returns the exit code and standard error.
    #[track_caller]
    pub(super) fn wait(&mut self) -> (Option<i32>, String) {
        wait_until("the end", || self.child.try_wait().unwrap().is_some());
        let mut message = String::new();
        std::io::Read::read_to_string(self.child.stderr.as_mut().unwrap(), &mut message).unwrap();
        (self.child.wait().unwrap().code(), message)
    }

    /// Closes the pipe, and waits for pping to end.
    #[track_caller]
    pub(super) fn finish(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        self.wait()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[track_caller]
pub(super) fn wait_until(what: &str, mut has_happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !has_happened() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(10));
    }
}
