//! Content negotiation (RFC 9110, 12): the format and the encoding that a client prefers.

use crate::metrics::{Encoding, PageFormat};

/// Parameters of a media type, and the values that they must have.
type Parameters = &'static [(&'static str, &'static str)];

/// The formats, with their media types and required parameters. At equal quality the first one wins.
const FORMATS: [(PageFormat, &str, Parameters); 3] = [
    (
        PageFormat::Protobuf,
        "application/vnd.google.protobuf",
        &[("proto", "io.prometheus.client.MetricFamily"), ("encoding", "delimited")],
    ),
    (PageFormat::OpenMetrics, "application/openmetrics-text", &[]),
    (PageFormat::Classic, "text/plain", &[]),
];

/// Returns the preferred format and encoding by the headers `Accept` and `Accept-Encoding`. A client that accepts no
/// format gets the classic text.
pub(super) fn preferred(accept: &str, accept_encoding: &str) -> (PageFormat, Encoding) {
    let mut best = (0, PageFormat::Classic);
    for (format, name, parameters) in FORMATS {
        let weight = match weight(accept, name, parameters) {
            None if format == PageFormat::Classic => weight(accept, "text/*", &[]),
            weight => weight,
        };
        let weight = weight.unwrap_or(0);
        if weight > best.0 {
            best = (weight, format);
        }
    }
    let of_encoding = |name| weight(accept_encoding, name, &[]).unwrap_or(0);
    let is_gzip = of_encoding("gzip") > 0 && of_encoding("gzip") >= of_encoding("identity");
    (best.1, if is_gzip { Encoding::Gzip } else { Encoding::Identity })
}

/// Returns the quality value of `wanted` with these parameters in a header, in thousandths; `None` if the header does
/// not list it.
fn weight(header: &str, wanted: &str, parameters: Parameters) -> Option<u16> {
    header
        .split(',')
        .filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
            let given = parts.filter_map(|part| part.split_once('='));
            let given = given.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')));
            let value_of = |wanted: &str| {
                given.clone().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
            };
            let is_it = is_it && parameters.iter().all(|&(name, value)| value_of(name) == Some(value));
            let quality = value_of("q").map_or(Ok(1.0), str::parse::<f32>);
            is_it.then(|| (quality.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u16)
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_values_are_parsed() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let weight = |header, wanted| weight(header, wanted, &[]);
        assert_eq!(weight(prometheus, "application/openmetrics-text"), Some(1000));
        assert_eq!(weight(prometheus, "text/plain"), Some(500));
        assert_eq!(weight(prometheus, "text/html"), None);
        assert_eq!(weight("deflate, gzip;q=0", "gzip"), Some(0));
        assert_eq!(weight("deflate, GZip ; Q=0.25", "gzip"), Some(250));
        assert_eq!(weight("gzip;q=much", "gzip"), Some(0));
        assert_eq!(weight("gzip;q=NaN", "gzip"), Some(0));
        assert_eq!(weight("", "gzip"), None);
    }

    #[test]
    fn the_format_with_the_highest_quality_is_preferred() {
        const PROTOBUF: &str =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        const OPEN: &str = "application/openmetrics-text;version=1.0.0";
        for (accept, expected) in [
            // Prometheus 2.40 to 2.42 with native histograms, and a later one.
            (format!("{PROTOBUF},{OPEN},text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), PageFormat::Protobuf),
            (format!("{PROTOBUF};q=0.6,{OPEN};q=0.5,text/plain;version=0.0.4;q=0.2"), PageFormat::Protobuf),
            (
                format!("{OPEN};q=0.6,{PROTOBUF};q=0.5,text/plain;version=0.0.4;q=0.2"),
                PageFormat::OpenMetrics,
            ),
            (format!("text/plain, {PROTOBUF};q=0.9"), PageFormat::Classic),
            (format!("{PROTOBUF};q=0,*/*"), PageFormat::Classic),
            // Other messages, and other encodings of the same message, are not available.
            ("application/vnd.google.protobuf".to_owned(), PageFormat::Classic),
            (PROTOBUF.replace("delimited", "text"), PageFormat::Classic),
            (PROTOBUF.replace("client", "model"), PageFormat::Classic),
            (
                PROTOBUF.replace(
                    "=io.prometheus.client.MetricFamily",
                    " = \"io.prometheus.client.MetricFamily\"",
                ),
                PageFormat::Protobuf,
            ),
            (format!("text/*;q=0.9,{OPEN};q=0.5"), PageFormat::Classic),
            (format!("text/*,text/plain;q=0.3,{OPEN};q=0.5"), PageFormat::OpenMetrics),
            ("*/*".to_owned(), PageFormat::Classic),
            (String::new(), PageFormat::Classic),
        ] {
            assert_eq!(preferred(&accept, "").0, expected, "{accept}");
        }
        for (accept, expected) in [
            ("br, gzip", Encoding::Gzip),
            ("gzip;q=0.5, identity;q=0.5", Encoding::Gzip),
            ("gzip;q=0.1, identity", Encoding::Identity),
            ("identity", Encoding::Identity),
        ] {
            assert_eq!(preferred("", accept).1, expected, "{accept}");
        }
    }
}
