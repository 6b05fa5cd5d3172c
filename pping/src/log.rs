//! The log on standard error: with the time for a terminal or a file, with priorities for the journal.

use std::{
    env,
    fmt::{self, Write as _},
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use tracing::{Event, Level, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Registry,
    filter::Targets,
    fmt::{
        FmtContext, FormatFields,
        format::{FormatEvent, Writer},
        layer,
    },
    layer::SubscriberExt as _,
    registry,
    registry::LookupSpan,
    reload,
    util::SubscriberInitExt as _,
};

/// The priority of an error in `sd-daemon(3)`.
const ERROR: u8 = 3;

/// Bytes of held log after which further lines are dropped.
const MAX_HELD: usize = 64 << 10;

/// The handle that changes the level of the process' log.
static LEVEL: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Writes the log to standard error: warnings and errors, or more with `verbosity` 1, 2 and 3.
pub fn init_log(verbosity: u8) {
    let (filter, handle) = reload::Layer::new(level(verbosity));
    let lines = layer()
        .with_writer(|| Log)
        .with_target(false)
        // tracing would print its errors to standard error, and panic if that is a file on a full disk.
        .log_internal_errors(false);
    let registry = registry().with(filter);
    if is_journal() {
        registry.with(lines.with_ansi(false).event_format(Prioritized)).init();
    } else {
        registry.with(lines.with_ansi(io::stderr().is_terminal())).init();
    }
    LEVEL.set(handle).ok();
}

/// Holds the log back while a screen is on the terminal. Dropping it writes the log.
#[derive(Debug)]
#[cfg(feature = "top")]
pub(crate) struct Held(());

#[cfg(feature = "top")]
impl Held {
    pub(crate) fn new() -> Self {
        *held() = Some(String::new());
        Self(())
    }

    /// Returns the number of lines held so far.
    pub(crate) fn lines() -> usize {
        held().as_ref().map_or(0, |text| text.lines().count())
    }
}

#[cfg(feature = "top")]
impl Drop for Held {
    fn drop(&mut self) {
        let text = held().take().unwrap_or_default();
        io::stderr().write_all(text.as_bytes()).ok();
    }
}

/// The log that is held back; `None` while lines are written at once.
fn held() -> MutexGuard<'static, Option<String>> {
    static HELD: Mutex<Option<String>> = Mutex::new(None);
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to standard error, or to the log that is held back.
struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *held() {
            // The first lines say most, so later ones are dropped.
            Some(text) if text.len() > MAX_HELD => {}
            Some(text) => text.push_str(&String::from_utf8_lossy(bytes)),
            None => return io::stderr().write(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Changes the verbosity, if [`init_log`] has started the log.
pub fn set_verbosity(verbosity: u8) {
    if let Some(handle) = LEVEL.get() {
        // It fails only when the log has ended.
        handle.reload(level(verbosity)).ok();
    }
}

/// The target of what a start says.
const START: &str = "start";

/// Says what pping does from now on, at any verbosity.
#[cfg(feature = "live")]
pub(crate) fn say_started(text: &str) {
    tracing::info!(target: START, "{text}");
}

fn level(verbosity: u8) -> Targets {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Targets::new().with_default(level).with_target(START, level.max(LevelFilter::INFO))
}

/// Reports why pping ends. If standard error is a closed pipe, nothing can be reported.
pub fn say_error(error: &impl fmt::Display) {
    let text = format!("pping: {error}");
    let text = if is_journal() { prioritized(ERROR, &text) } else { text + "\n" };
    io::stderr().write_all(text.as_bytes()).ok();
}

/// Whether standard error is the journal, which records the time itself (`systemd.exec(5)`).
fn is_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let metadata = io::stderr().as_fd().try_clone_to_owned().and_then(|stderr| File::from(stderr).metadata());
    // Standard error may have been redirected since.
    metadata.is_ok_and(|metadata| stream == format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// Begins each line with a priority.
fn prioritized(priority: u8, text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        // Writing to a string cannot fail.
        writeln!(lines, "<{priority}>{line}").ok();
    }
    lines
}

/// Formats lines for the journal.
struct Prioritized;

impl<S, N> FormatEvent<S, N> for Prioritized
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        writer.write_str(&prioritized(priority(*event.metadata().level()), &text))
    }
}

/// Returns the journal's priority for a level. No level maps to the priority of a notice.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use tracing::enabled;

    use super::*;

    #[test]
    fn every_line_has_its_priority() {
        assert_eq!(prioritized(ERROR, "one\n  two"), "<3>one\n<3>  two\n");
        let levels = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
        assert_eq!(levels.map(priority), [3, 4, 6, 7, 7]);
    }

    #[test]
    fn the_level_can_change_later() {
        init_log(0);
        assert!(enabled!(Level::WARN) && !enabled!(Level::INFO));
        set_verbosity(1);
        assert!(enabled!(Level::INFO) && !enabled!(Level::DEBUG));
        set_verbosity(3);
        assert!(enabled!(Level::TRACE));
        set_verbosity(0);
        assert!(enabled!(Level::WARN) && !enabled!(Level::INFO));
        assert!(enabled!(target: START, Level::INFO));
    }
}
