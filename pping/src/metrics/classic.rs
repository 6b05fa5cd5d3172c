//! The classic Prometheus text format, made from `OpenMetrics` text.
//!
//! The client library writes `OpenMetrics` only, which differs in its comment lines: the name of a counter lacks `_total`
//! and that of an info `_info`, units have a line of their own, and a mark ends the text. Lines with values are the same.

use std::fmt::Write as _;

/// Rewrites an exposition.
pub(super) fn to_classic(openmetrics: &str) -> String {
    let mut classic = String::with_capacity(openmetrics.len());
    // `# HELP` comes first in a family, but its name depends on the `# TYPE` that follows.
    let mut help: Option<&str> = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = Some(rest);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            let text = help.take().and_then(|help| help.split_once(' ')).map_or("", |(_, text)| text);
            // Writing to a `String` cannot fail.
            let _ = write!(classic, "# HELP {name}{suffix} {text}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            classic.push_str(line);
            classic.push('\n');
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_become_those_of_the_classic_format() {
        let openmetrics = "# HELP a Things.\n# TYPE a counter\na_total{x=\"1\"} 2\n\
            # HELP b_seconds Time.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\nb_seconds_sum 1.0\n\
            # HELP c Build.\n# TYPE c info\nc_info{v=\"1\"} 1\n# EOF\n";
        assert_eq!(
            to_classic(openmetrics),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"1\"} 2\n\
            # HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_sum 1.0\n\
            # HELP c_info Build.\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n"
        );
    }
}
