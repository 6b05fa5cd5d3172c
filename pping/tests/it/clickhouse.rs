//! `ClickHouse`'s engine with the tables and queries of `deploy/clickhouse`, checked against jq on the same records.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use pping_lab::Namespace;
use serde_json::Value;
use tempfile::TempDir;

use crate::python::python_with;

/// The folder with the engine's script and the jq functions.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clickhouse");

/// The port of `ClickHouse`'s HTTP interface.
pub(crate) const PORT: u16 = 8123;

/// The queries of `queries.sql` in file order, by their names in `questions.jq`.
pub(crate) const QUESTIONS: [&str; 5] =
    ["worst_prefixes", "month_of_customer", "before_and_after", "failing_resolvers", "start_of_inflation"];

/// How far rounded milliseconds may differ.
const ROUNDING: f64 = 0.0011;

/// Parameters of a query, by name.
pub(crate) type Parameters<'a> = BTreeMap<&'a str, String>;

/// Returns the path of a file in `deploy/clickhouse`.
pub(crate) fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/clickhouse").join(name)
}

/// Returns the statements of a file in `deploy/clickhouse`, without comments.
pub(crate) fn statements(name: &str) -> Vec<String> {
    statements_of(&deployed(name))
}

/// Returns the statements of a file, without comments. Each statement ends with a semicolon at the end of a line.
pub(crate) fn statements_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code).trim_end())
        .filter(|line| !line.is_empty())
        .collect();
    let code = code.join("\n");
    let (statements, rest) = code.rsplit_once(';').unwrap();
    assert_eq!(rest, "", "{} does not end with a semicolon", path.display());
    statements.split(";\n").map(ToOwned::to_owned).collect()
}

/// A running engine with an HTTP interface, killed on drop.
pub(crate) struct Engine<'a> {
    host: Option<&'a Namespace>,
    child: Child,
    port: u16,
    /// The engine's own directory, if it has one; deleted on drop.
    directory: Option<TempDir>,
}

impl<'a> Engine<'a> {
    /// Starts an engine on the data in `data`: in a network namespace at [`PORT`], or in the test's own namespace at
    /// any port.
    pub(crate) fn open(host: Option<&'a Namespace>, data: &Path) -> Self {
        let python = python_with("chdb").unwrap_or_else(|| {
            panic!(
                "neither PPING_PYTHON nor python3 is a Python with the package chdb; `cargo xtask setup --tests` gets it"
            )
        });
        let mut command = host.map_or_else(|| Command::new(&python), |host| host.command(&python));
        command.arg(format!("{FOLDER}/server.py")).arg(host.map_or(0, |_| PORT).to_string()).arg(data);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening on ").and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the engine did not start: {line:?}"));
        Self { host, child, port, directory: None }
    }

    /// Starts an engine with empty tables.
    pub(crate) fn with_tables(host: Option<&'a Namespace>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut engine = Self::open(host, directory.path());
        engine.directory = Some(directory);
        engine.make_tables();
        engine
    }

    /// Runs each statement of `schema.sql`, twice.
    pub(crate) fn make_tables(&self) {
        for _ in 0..2 {
            for statement in statements("schema.sql") {
                self.run(&statement, &Parameters::new());
            }
        }
    }

    fn request(&self, query: &[(&str, &str)], parameters: &Parameters<'_>, body: &[u8]) -> Output {
        let mut curl = self.host.map_or_else(|| Command::new("curl"), |host| host.command("curl"));
        curl.args(["--silent", "--show-error", "--fail-with-body", "--data-binary", "@-"]);
        for (name, value) in query {
            curl.args(["--url-query", &format!("{name}={value}")]);
        }
        for (name, value) in parameters {
            curl.args(["--url-query", &format!("param_{name}={value}")]);
        }
        curl.arg(format!("http://127.0.0.1:{}/", self.port));
        let mut child =
            curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // An engine that refuses may not read the whole request.
        child.stdin.take().unwrap().write_all(body).ok();
        child.wait_with_output().unwrap()
    }

    /// Runs a statement, and returns the engine's answer.
    #[track_caller]
    pub(crate) fn run(&self, statement: &str, parameters: &Parameters<'_>) -> String {
        let output = self.request(&[], parameters, statement.as_bytes());
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{statement}: {answer}{}", String::from_utf8_lossy(&output.stderr));
        answer
    }

    /// Returns the rows of a query as JSON objects.
    #[track_caller]
    pub(crate) fn rows(&self, query: &str, parameters: &Parameters<'_>) -> Vec<Value> {
        let answer = self.run(&format!("{query}\nFORMAT JSONEachRow"), parameters);
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Loads JSON lines as `deploy/clickhouse/README.md` says.
    ///
    /// # Errors
    /// If the engine refuses the lines, with its message.
    pub(crate) fn load(&self, lines: &[u8]) -> Result<(), String> {
        let query = [
            ("query", "INSERT INTO pping.records FORMAT JSONEachRow"),
            ("input_format_skip_unknown_fields", "1"),
        ];
        let output = self.request(&query, &Parameters::new(), lines);
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }

    /// Asserts that the engine answers each of these questions as jq does on the records in `file`.
    #[track_caller]
    pub(crate) fn assert_answers(&self, questions: &[&str], parameters: &Parameters<'_>, file: &Path) {
        let queries = statements("queries.sql");
        assert_eq!(queries.len(), QUESTIONS.len());
        for (query, question) in queries.iter().zip(QUESTIONS) {
            if questions.contains(&question) {
                let found = self.rows(query, parameters);
                let expected = jq(&format!("{question}($ask)"), parameters, file);
                let expected = expected.as_array().unwrap();
                assert!(!expected.is_empty(), "{question} has no answer in {parameters:?}");
                assert_same_rows(question, &found, expected);
            }
        }
    }
}

impl Drop for Engine<'_> {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a jq filter on the records in `file`, with the functions of `questions.jq`.
#[track_caller]
pub(crate) fn jq(filter: &str, parameters: &Parameters<'_>, file: &Path) -> Value {
    let mut jq = Command::new("jq");
    jq.args(["--slurp", "-L", FOLDER, "--argjson", "ask", &serde_json::to_string(parameters).unwrap()]);
    let output = jq.arg(format!("include \"questions\"; {filter}")).arg(file).output().unwrap();
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that two answers have the same rows in the same order. Values that jq rounded may differ in the last digit.
#[track_caller]
pub(crate) fn assert_same_rows(what: &str, found: &[Value], expected: &[Value]) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:#?}, not {expected:#?}");
    for (found, expected) in found.iter().zip(expected) {
        let fields = expected.as_object().unwrap();
        assert_eq!(found.as_object().unwrap().len(), fields.len(), "{what}: {found}, not {expected}");
        for (name, value) in fields {
            let is_same = match (&found[name], value) {
                (Value::Number(one), Value::Number(other)) => {
                    (one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < ROUNDING
                }
                // The time has more digits than jq's numbers.
                (Value::String(one), Value::String(other)) if name == "since" => one.starts_with(other),
                (one, other) => one == other,
            };
            assert!(is_same, "{what}: {name} of {found}, not of {expected}");
        }
    }
}
