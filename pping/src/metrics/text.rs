//! The text formats: classic and `OpenMetrics`. They differ in comment lines only.

use pping_common::{abi::BUCKETS, hist};

use super::{
    exposition::{Exposition, Prefix, Value},
    histogram::RttHistogram,
    labels::{FormattedLabels, label},
    metric::{Kind, Metric},
    page::{Body, Encoding, Page},
};

/// A page in a text format.
pub(super) struct Text {
    is_open: bool,
    body: Body,
    /// The name of the family's series.
    name: String,
    /// The name of a histogram's buckets, sum and count, up to the labels of a series.
    buckets: Vec<String>,
    sum: String,
    count: String,
}

impl Text {
    /// Begins a page in `OpenMetrics` or, if not `is_open`, in the classic format.
    pub(super) fn new(is_open: bool, encoding: Encoding) -> Self {
        Self {
            is_open,
            body: Body::new(encoding),
            name: String::new(),
            buckets: Vec::new(),
            sum: String::new(),
            count: String::new(),
        }
    }
}

impl Exposition for Text {
    fn family(&mut self, metric: &Metric) {
        let (name, Metric { kind, help, .. }) = (metric.name_on_pages(), metric);
        let (suffix, kind) = match kind {
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Summary => ("", "summary"),
            Kind::Counter => ("_total", "counter"),
            Kind::Info => ("_info", if self.is_open { "info" } else { "gauge" }),
        };
        // OpenMetrics names a family without the suffix of its series.
        let described = if self.is_open { "" } else { suffix };
        let end = self.body.end();
        put(end, &["# HELP ", &name, described, " ", help, ".\n# TYPE ", &name, described, " ", kind, "\n"]);
        if let (true, Some(unit)) = (self.is_open, metric.unit_on_pages()) {
            put(end, &["# UNIT ", &name, " ", unit, "\n"]);
        }
        self.name = format!("{name}{suffix}");
        if metric.kind == Kind::Histogram {
            self.buckets =
                (0..BUCKETS).map(|bucket| format!("{name}_bucket{{le=\"{}\",", bound(bucket))).collect();
        }
        if matches!(metric.kind, Kind::Histogram | Kind::Summary) {
            self.sum = format!("{name}_sum{{");
            self.count = format!("{name}_count{{");
        }
    }

    fn prefix(&self, labels: &[(&str, &str)]) -> Prefix {
        let mut text = format!("{}{{", self.name);
        for (name, value) in labels {
            label(&mut text, name, value);
            text.push(',');
        }
        Prefix(text.into_bytes())
    }

    fn value(&mut self, prefix: &Prefix, labels: &FormattedLabels, value: Value) {
        let end = self.body.end();
        match prefix.0.as_slice() {
            // Without any label there are no braces either.
            [name @ .., b'{'] if labels.text.is_empty() => {
                end.extend_from_slice(name);
                end.push(b' ');
            }
            prefix => begin(end, prefix, labels),
        }
        match value {
            Value::Integer(value) => integer(end, value),
            Value::Nanoseconds(value) => seconds(end, value),
            Value::Float(value) => end.extend_from_slice(float(value).as_bytes()),
        }
        end.push(b'\n');
    }

    fn histogram(&mut self, labels: &FormattedLabels, histogram: &RttHistogram) {
        let buckets = histogram.cumulative();
        let end = self.body.end();
        for (prefix, count) in self.buckets.iter().zip(buckets) {
            begin(end, prefix.as_bytes(), labels);
            integer(end, count);
            end.push(b'\n');
        }
        self.sum_and_count(labels, histogram.sum(), buckets[BUCKETS - 1]);
    }

    fn summary(&mut self, labels: &FormattedLabels, count: u64, sum: u64) {
        self.sum_and_count(labels, sum.into(), count);
    }

    fn finish(mut self: Box<Self>) -> Page {
        if self.is_open {
            put(self.body.end(), &["# EOF\n"]);
        }
        self.body.finish()
    }
}

impl Text {
    /// Writes the last lines of a histogram, or all of a summary. The sum is in ns.
    fn sum_and_count(&mut self, labels: &FormattedLabels, sum: u128, count: u64) {
        let end = self.body.end();
        begin(end, self.sum.as_bytes(), labels);
        seconds(end, sum);
        end.push(b'\n');
        begin(end, self.count.as_bytes(), labels);
        integer(end, count);
        end.push(b'\n');
    }
}

/// Returns the upper bound of a bucket, as in the label `le`.
fn bound(bucket: usize) -> String {
    if bucket == BUCKETS - 1 {
        return "+Inf".to_owned();
    }
    float(2_f64.powi(hist::FIRST_OCTAVE + bucket as i32))
}

fn put(end: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        end.extend_from_slice(part.as_bytes());
    }
}

#[inline]
fn begin(end: &mut Vec<u8>, prefix: &[u8], labels: &FormattedLabels) {
    end.extend_from_slice(prefix);
    end.extend_from_slice(labels.text.as_bytes());
    end.extend_from_slice(b"} ");
}

#[inline]
fn integer(end: &mut Vec<u8>, value: u64) {
    end.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a time in nanoseconds as seconds with nine decimals.
fn seconds(end: &mut Vec<u8>, nanoseconds: u128) {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, (nanoseconds % 1_000_000_000) as u32);
    end.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
    // Ten digits, the first of which is a 1 that the point overwrites.
    let point = end.len();
    end.extend_from_slice(itoa::Buffer::new().format(1_000_000_000 + rest).as_bytes());
    end[point] = b'.';
}

/// Formats a number as Prometheus does. In the label `le` the number is text, and other text would be another series.
fn float(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-4 {
        let text = format!("{number:e}");
        // The exponent has two digits.
        return match text.split_once("e-") {
            Some((mantissa, exponent)) if exponent.len() < 2 => format!("{mantissa}e-0{exponent}"),
            _ => text,
        };
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_open: bool) -> String {
        let mut page = Text::new(is_open, Encoding::Identity);
        let family = |name, unit, kind| Metric { name, unit, kind, help: "Things" };
        page.family(&family("a", "", Kind::Counter));
        page.value(
            &page.prefix(&[("x", "1")]),
            &FormattedLabels::new(&[("y", "a \"b\"\\c\nd")]),
            Value::Integer(2),
        );
        page.family(&family("b", "s", Kind::Gauge));
        page.value(
            &page.prefix(&[]),
            &FormattedLabels::new(&[("y", "é")]),
            Value::Nanoseconds(1_050_000_000),
        );
        page.family(&family("c", "", Kind::Info));
        page.value(&page.prefix(&[]), &FormattedLabels::new(&[("v", "1"), ("w", "2")]), Value::Integer(1));
        page.family(&family("d", "", Kind::Gauge));
        page.value(&page.prefix(&[]), &FormattedLabels::default(), Value::Float(0.25));
        page.family(&family("e", "s", Kind::Summary));
        page.summary(&FormattedLabels::new(&[("y", "1")]), 3, 120);
        Box::new(page).finish().text()
    }

    #[test]
    fn the_formats_differ_in_comment_lines() {
        assert_eq!(
            written(false),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"1\",y=\"a \\\"b\\\"\\\\c\\nd\"} 2\n\
             # HELP b_seconds Things.\n# TYPE b_seconds gauge\nb_seconds{y=\"é\"} 1.050000000\n\
             # HELP c_info Things.\n# TYPE c_info gauge\nc_info{v=\"1\",w=\"2\"} 1\n\
             # HELP d Things.\n# TYPE d gauge\nd 0.25\n\
             # HELP e_seconds Things.\n# TYPE e_seconds summary\n\
             e_seconds_sum{y=\"1\"} 0.000000120\ne_seconds_count{y=\"1\"} 3\n"
        );
        assert_eq!(
            written(true),
            "# HELP a Things.\n# TYPE a counter\na_total{x=\"1\",y=\"a \\\"b\\\"\\\\c\\nd\"} 2\n\
             # HELP b_seconds Things.\n# TYPE b_seconds gauge\n# UNIT b_seconds seconds\nb_seconds{y=\"é\"} 1.050000000\n\
             # HELP c Things.\n# TYPE c info\nc_info{v=\"1\",w=\"2\"} 1\n\
             # HELP d Things.\n# TYPE d gauge\nd 0.25\n\
             # HELP e_seconds Things.\n# TYPE e_seconds summary\n# UNIT e_seconds seconds\n\
             e_seconds_sum{y=\"1\"} 0.000000120\ne_seconds_count{y=\"1\"} 3\n# EOF\n"
        );
    }
}
