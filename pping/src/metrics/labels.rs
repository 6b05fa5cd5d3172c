//! Labels of series, formatted for text and for protobuf.

use prost::Message;

use super::metric::Labels;

/// The labels of a series, formatted once for each format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FormattedLabels {
    /// As text, without the braces around them.
    pub(super) text: Box<str>,
    /// As fields of a message `Metric`.
    pub(super) protobuf: Box<[u8]>,
}

impl From<&Labels> for FormattedLabels {
    fn from(labels: &Labels) -> Self {
        let labels: Vec<_> = labels.iter().map(|(name, value)| (*name, &**value)).collect();
        Self::new(&labels)
    }
}

impl FormattedLabels {
    /// The labels with these names and values.
    pub(super) fn new(labels: &[(&str, &str)]) -> Self {
        Self { text: text(labels).into(), protobuf: protobuf(labels).into() }
    }
}

/// The part of `Metric` that has the labels.
#[derive(Clone, PartialEq, Message)]
struct LabelPairs {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Encodes labels as they are inside a `Metric`.
pub(super) fn protobuf(labels: &[(&str, &str)]) -> Vec<u8> {
    let pair = |&(name, value): &(&str, &str)| LabelPair { name: name.to_owned(), value: value.to_owned() };
    LabelPairs { label: labels.iter().map(pair).collect() }.encode_to_vec()
}

/// Formats labels as text, without the braces around them.
fn text(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        label(&mut text, name, value);
    }
    text
}

/// Appends a label with its value escaped.
pub(super) fn label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
}
