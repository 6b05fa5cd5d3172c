//! The queries of `deploy/history` in `DuckDB`, polars and `ClickHouse`'s engine, on files that pping wrote. What they answer is
//! compared with what `pping history` prints.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

pub(crate) mod reference;
mod weeks;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::Value;

use self::reference::Reference;
use crate::{
    clickhouse::{Engine, Parameters, assert_same_rows, statements_of},
    python::python_with,
};

const PPING: &str = env!("CARGO_BIN_EXE_pping");

/// The folder with the queries.
const DEPLOYED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/history");

/// The questions in the order of the files, by their names in `history_polars.py`, and their parameters.
const QUESTIONS: [(&str, &[&str]); 6] = [
    ("covers", &[]),
    ("worst-prefixes", &["night", "hours", "least"]),
    ("month-of-customer", &["customer", "month"]),
    ("before-and-after", &["change", "hours", "least"]),
    ("failing-resolvers", &["from", "until"]),
    ("start-of-inflation", &["from", "until", "least", "times"]),
];

/// The place of the worst prefixes among the questions.
const WORST: usize = 1;

/// The rows that answer each question.
type Answers = Vec<Vec<Value>>;

/// A UTC time as the queries take it, in seconds since the epoch.
fn moment(text: &str) -> u64 {
    let time: DateTime = text.parse().unwrap();
    time.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second().try_into().unwrap()
}

/// A UTC time as the queries take it, from seconds since the epoch.
pub(crate) fn text(moment: u64) -> String {
    let time = Timestamp::from_second(i64::try_from(moment).unwrap()).unwrap();
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn python(package: &str) -> PathBuf {
    python_with(package).unwrap_or_else(|| {
        panic!(
            "neither PPING_PYTHON nor python3 has the package {package}; `cargo xtask setup --tests` gets it"
        )
    })
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn duckdb_command(files: &str, zone: &str, asked: &Parameters<'_>) -> Command {
    let mut asked = asked.clone();
    asked.insert("files", files.to_owned());
    let mut command = Command::new(python("duckdb"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/engines/duckdb_answers.py"));
    command.arg(format!("{DEPLOYED}/duckdb.sql")).arg(zone).arg(serde_json::to_string(&asked).unwrap());
    command
}

fn duckdb(files: &str, zone: &str, asked: &Parameters<'_>) -> Answers {
    serde_json::from_str(&printed(&mut duckdb_command(files, zone, asked))).unwrap()
}

fn polars_command(files: &str, zone: &str, question: usize, asked: &Parameters<'_>) -> Command {
    let (name, parameters) = QUESTIONS[question];
    let mut command = Command::new(python("polars"));
    command.arg(format!("{DEPLOYED}/history_polars.py")).args(["--zone", zone, "--json", files, name]);
    for parameter in parameters {
        command.arg(format!("--{parameter}={}", asked[parameter]));
    }
    command
}

fn polars(files: &str, zone: &str, question: usize, asked: &Parameters<'_>) -> Vec<Value> {
    let text = printed(&mut polars_command(files, zone, question, asked));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Makes `pping.history` as a file of `deploy/history` says. No object store is there, so its table is one of local files.
fn define(engine: &Engine<'_>, files: &str, definition: &str) {
    for statement in statements_of(&Path::new(DEPLOYED).join(definition)) {
        let statement =
            statement.replace("s3({files:String}, {key:String}, {secret:String}, ", "file({files:String}, ");
        engine.run(&statement, &Parameters::from([("files", files.to_owned())]));
    }
}

/// Makes `pping.history` of files, and the functions for percentiles.
pub(crate) fn make_tables(engine: &Engine<'_>, files: &str) {
    let statements = statements_of(&Path::new(DEPLOYED).join("clickhouse.sql"));
    for statement in statements.iter().filter(|statement| statement.starts_with("CREATE")) {
        engine.run(statement, &Parameters::new());
    }
    define(engine, files, "clickhouse-files.sql");
}

fn clickhouse(files: &str, zone: &str, asked: &Parameters<'_>, definition: &str) -> Answers {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(None, directory.path());
    engine.run(&format!("SET session_timezone = '{zone}'"), &Parameters::new());
    make_tables(&engine, files);
    define(&engine, files, definition);
    let mut questions = statements_of(&Path::new(DEPLOYED).join("clickhouse.sql"));
    questions.retain(|statement| !statement.starts_with("CREATE"));
    questions.iter().map(|question| engine.rows(question, asked)).collect()
}

/// The answers of each engine, with all times in the same form.
fn answers(files: &str, asked: &Parameters<'_>) -> [(&'static str, Answers); 3] {
    let all = [
        ("DuckDB", duckdb(files, "UTC", asked)),
        ("polars", (0..QUESTIONS.len()).map(|question| polars(files, "UTC", question, asked)).collect()),
        ("ClickHouse", clickhouse(files, "UTC", asked, "clickhouse-files.sql")),
    ];
    all.map(|(engine, mut answers)| {
        assert_eq!(answers.len(), QUESTIONS.len(), "{engine}");
        for row in answers.iter_mut().flatten() {
            for name in ["first", "last", "since"] {
                if let Some(Value::String(time)) = row.get_mut(name) {
                    *time = time[..19].replace('T', " ");
                }
            }
        }
        (engine, answers)
    })
}

/// Asserts that all engines answer the questions about files of some boxes as the reference does.
#[track_caller]
pub(crate) fn assert_answers(files: &str, boxes: usize, reference: &Reference, asked: &Parameters<'_>) {
    let expected = [
        reference.worst_prefixes(asked, 0),
        reference.month_of_customer(asked),
        reference.before_and_after(asked),
        reference.failing_resolvers(asked),
        reference.start_of_inflation(asked),
    ];
    let all = answers(files, asked);
    for (engine, answers) in &all {
        assert_eq!(answers[0].len(), boxes, "{engine}: {:?}", answers[0]);
        assert_same_rows(&format!("{engine} in {files}: covers"), &answers[0], &all[0].1[0]);
        for ((found, expected), (question, _)) in answers[1..].iter().zip(&expected).zip(&QUESTIONS[1..]) {
            assert!(!expected.is_empty(), "{question} has no answer in {asked:?}");
            assert_same_rows(&format!("{engine} in {files}: {question}"), found, expected);
        }
    }
}

/// What is asked of the days that [`weeks`] makes.
fn asked() -> Parameters<'static> {
    Parameters::from([
        ("night", text(weeks::BEGIN + 7 * weeks::DAY)[..10].to_owned()),
        ("hours", "6".to_owned()),
        ("least", "4".to_owned()),
        ("customer", "customer-3".to_owned()),
        ("month", "2026-11-20".to_owned()),
        ("change", text(weeks::CHANGE)),
        ("from", text(weeks::BEGIN + 8 * weeks::DAY)),
        ("until", text(weeks::END)),
        ("times", "1.5".to_owned()),
    ])
}

#[test]
fn engines_agree_with_pping_on_days_of_one_box_and_of_two() {
    // In memory, where syncing takes no time.
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let boxes: Vec<PathBuf> =
        ["gw1", "gw2"].iter().map(|name| directory.path().join(format!("host={name}"))).collect();
    for (seed, directory) in (1..).zip(&boxes) {
        std::fs::create_dir(directory).unwrap();
        weeks::write(directory, seed);
    }
    let (asked, range) = (asked(), (weeks::BEGIN, weeks::END));
    let read = |boxes: &[(Option<&str>, &Path)], step| Reference::read(boxes, &weeks::groups(), step, range);
    let both = [(Some("gw1"), &*boxes[0]), (Some("gw2"), &*boxes[1])];
    let files = format!("{}/host=*/1h/**/*.parquet", directory.path().display());
    let reference = read(&both, "1h");
    assert_answers(&files, 2, &reference, &asked);
    // A night that begins in another time zone, an hour earlier in winter.
    let expected = reference.worst_prefixes(&asked, weeks::HOUR);
    assert_ne!(expected, reference.worst_prefixes(&asked, 0));
    let zone = "Europe/Berlin";
    for (engine, found) in [
        ("DuckDB", &duckdb(&files, zone, &asked)[WORST]),
        ("polars", &polars(&files, zone, WORST, &asked)),
        ("ClickHouse", &clickhouse(&files, zone, &asked, "clickhouse-s3.sql")[WORST]),
    ] {
        assert_same_rows(&format!("{engine} in Berlin"), found, &expected);
    }
    // Without the name of the box, by shorter intervals.
    let history = directory.path().join("history");
    std::fs::rename(&boxes[0], &history).unwrap();
    let files = format!("{}/5m/**/*.parquet", history.display());
    assert_answers(&files, 1, &read(&[(None, &history)], "5m"), &asked);
    assert_explained(&history);
}

/// Asserts that each engine says what is wrong if no file matches, and what there is if nothing was measured.
fn assert_explained(directory: &Path) {
    let (asked, nothing) = (asked(), format!("{}/5h/*.parquet", directory.display()));
    for (mut command, said) in [
        (duckdb_command(&nothing, "UTC", &asked), "No files found that match the pattern"),
        (polars_command(&nothing, "UTC", 0, &asked), "no history is there"),
    ] {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said) && text.contains(&nothing), "{text}");
    }
    let mut unset = asked.clone();
    unset.remove("night");
    let output =
        duckdb_command(&format!("{}/1h/*.parquet", directory.display()), "UTC", &unset).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("set the variable `night`"), "{output:?}");
    let mut command = Command::new(python("polars"));
    command.arg(format!("{DEPLOYED}/history_polars.py")).arg(format!("{}/1h/*.parquet", directory.display()));
    command.args(["failing-resolvers", "--from", "2025-01-01", "--until", "2025-01-02"]);
    let table = printed(&mut command);
    assert!(table.starts_with("no rows: ") && table.contains("2026-11-03"), "{table}");
    // A reader that has enough, such as `head`, is no error.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn functions_for_percentiles_are_those_of_the_records() {
    let functions = |path: PathBuf| {
        let mut statements = statements_of(&path);
        statements.retain(|statement| statement.contains("FUNCTION IF NOT EXISTS pping"));
        statements
    };
    let here = functions(Path::new(DEPLOYED).join("clickhouse.sql"));
    let there = functions(crate::clickhouse::deployed("schema.sql"));
    assert_eq!(there.len(), 2);
    assert!(there.iter().all(|function| here.contains(function)), "{here:#?}");
}
