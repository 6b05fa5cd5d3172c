//! The memory and the processor time that a process has taken.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context as _, Result};

use crate::agent::{Resources, resources};

/// The number of the kind of map that has the prefixes (`enum bpf_map_type` of linux/bpf.h).
const LPM_TRIE: u64 = 11;

/// What a process takes at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) resources: Resources,
    /// The memory of its maps, and of those that of prefixes, as the kernel reports it, bytes.
    pub(super) maps: u64,
    pub(super) prefixes: u64,
    /// The processor time so far.
    pub(super) processor: Duration,
}

impl Usage {
    pub(super) fn read(process: u32) -> Result<Self> {
        let (mut maps, mut tries) = (BTreeMap::new(), BTreeMap::new());
        for entry in fs::read_dir(format!("/proc/{process}/fdinfo"))? {
            // The descriptor was closed in the meantime.
            let Ok(info) = fs::read_to_string(entry?.path()) else { continue };
            let number = |key: &str| {
                let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
                line.and_then(|number| number.trim().parse::<u64>().ok())
            };
            let (Some(id), Some(memory)) = (number("map_id"), number("memlock")) else { continue };
            maps.insert(id, memory);
            if number("map_type") == Some(LPM_TRIE) {
                tries.insert(number("max_entries").unwrap_or(0), memory);
            }
        }
        // That of prefixes has the most room.
        let prefixes = tries.last_key_value().map(|(_, memory)| *memory).context("no map of prefixes")?;
        Ok(Self {
            resources: resources(process)?,
            maps: maps.values().sum(),
            prefixes,
            processor: processor(process)?,
        })
    }
}

/// The processor time that a process has had, from its ticks of 10 ms (proc(5)).
fn processor(process: u32) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before it may have spaces.
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields.split(' ').collect::<Vec<_>>());
    let tick = |index: usize| fields.as_ref()?.get(index)?.parse::<u64>().ok();
    let ticks = tick(11).zip(tick(12)).context("no processor time")?;
    Ok(Duration::from_millis(10 * (ticks.0 + ticks.1)))
}
