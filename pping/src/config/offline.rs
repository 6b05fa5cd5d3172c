//! What makes no sense with a capture.

/// Options, and why.
const REFUSED: [(&str, &str); 9] = [
    ("--wait", "a capture is there or not"),
    ("--ingress", "the packets of a capture pass no hook"),
    ("--include-local", "a capture does not tell which addresses were local, so all its packets are timed"),
    (
        "--listen",
        "a capture is over before anybody can scrape it; see the summary at the end, or --format jsonl",
    ),
    ("--web-config", "a capture has no metrics"),
    ("--prometheus-groups", "a capture has no metrics"),
    ("--baseline", "a capture has no metrics"),
    ("--pin", "no kernel program is involved"),
    ("--bpf-log", "no kernel program is involved"),
];

/// Whether an option is one of them: as it is typed, and why.
pub(super) fn refused(key: &str) -> Option<(&'static str, &'static str)> {
    REFUSED.into_iter().find(|(option, _)| option.strip_prefix("--") == Some(key))
}
