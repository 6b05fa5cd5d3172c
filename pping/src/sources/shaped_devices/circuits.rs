//! The names of circuits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use clap::ValueEnum;
use ipnet::IpNet;

use super::super::change::Name;
use crate::groups;

/// What groups are named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabelBy {
    /// Circuit Name
    CircuitName,
    /// Circuit ID
    CircuitId,
}

/// A device of a circuit.
pub(super) struct Device {
    pub(super) line: u64,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) columns: groups::Columns,
    pub(super) prefixes: Vec<IpNet>,
}

/// Gives each prefix the name of its circuit.
pub(super) fn named(
    devices: &[Device],
    label_by: LabelBy,
    left_out: &mut impl FnMut(u64, &str),
) -> HashMap<IpNet, Name> {
    let labels = labels(devices, label_by);
    let columns = columns(devices, &labels, left_out);
    let mut named: HashMap<IpNet, Name> = HashMap::new();
    for (Device { line, prefixes, .. }, label) in devices.iter().zip(&labels) {
        for &prefix in prefixes {
            match named.get(&prefix) {
                Some(other) if other.label != *label => {
                    left_out(
                        *line,
                        &format!("{prefix} is an address of the circuit `{}` already", other.label),
                    );
                }
                Some(_) => {}
                None => {
                    let columns = columns.get(&**label).cloned().unwrap_or_default();
                    named.insert(prefix, Name { label: Arc::clone(label), columns: Some(columns) });
                }
            }
        }
    }
    named
}

/// The label of each device: that of its circuit. A name that several circuits have gets the ID of each, and gets it once more if
/// that is the name of another one.
fn labels(devices: &[Device], label_by: LabelBy) -> Vec<Arc<str>> {
    if label_by == LabelBy::CircuitId {
        return devices.iter().map(|device| device.id.as_str().into()).collect();
    }
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut ambiguous: HashSet<&str> = HashSet::new();
    for Device { id, name, .. } in devices {
        if *first.entry(name).or_insert(id) != id {
            ambiguous.insert(name);
        }
    }
    let mut taken: HashSet<String> = first.keys().map(|&name| name.to_owned()).collect();
    let mut made: HashMap<(&str, &str), Arc<str>> = HashMap::new();
    let mut labels = Vec::with_capacity(devices.len());
    for Device { id, name, .. } in devices {
        if !ambiguous.contains(name.as_str()) {
            labels.push(name.as_str().into());
            continue;
        }
        let label = made.entry((name, id)).or_insert_with(|| {
            let mut label = format!("{name} ({id})");
            while !taken.insert(label.clone()) {
                label = format!("{label} ({id})");
            }
            label.into()
        });
        labels.push(Arc::clone(label));
    }
    labels
}

/// The columns of each label. They are those of all its devices, so the first line that has one counts.
fn columns<'a>(
    devices: &[Device],
    labels: &'a [Arc<str>],
    left_out: &mut impl FnMut(u64, &str),
) -> HashMap<&'a str, groups::Columns> {
    let mut all: HashMap<&str, groups::Columns> = HashMap::new();
    for (Device { line, columns, .. }, label) in devices.iter().zip(labels) {
        let known = all.entry(label).or_default();
        for (name, value) in columns {
            match known.iter().find(|(column, _)| column == name) {
                Some((_, first)) if first != value => {
                    left_out(*line, &format!("`{label}` has the {name} `{first}` already, not `{value}`"));
                }
                Some(_) => {}
                None => known.push((Arc::clone(name), Arc::clone(value))),
            }
        }
    }
    all
}
