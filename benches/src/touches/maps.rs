//! The maps of programs in the kernel, and copies of them.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    os::fd::{AsFd as _, AsRawFd as _},
};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    Ebpf,
    maps::{MapInfo, MapType},
};
use aya_obj::generated::{bpf_attr__bindgen_ty_3 as Batch, bpf_cmd};
use pping_common::abi::Stage;

/// The longest name of a map in the kernel.
const MAX_NAME: usize = 15;

/// How a map finds its values, which are in a region of memory.
pub(super) enum Map {
    /// By index.
    Array { stride: usize, entries: u32 },
    /// By key: the slot of each.
    Hash { key_size: usize, stride: usize, slots: HashMap<Vec<u8>, usize> },
    /// The names of programs.
    Programs(Vec<String>),
    /// There are none, and none are added.
    Empty,
}

/// A copy of a map, for a machine that has only packets.
pub(super) struct Copied {
    pub(super) map: Map,
    pub(super) values: Vec<u8>,
    /// Whether it is noted which lines are touched: not of constants, and not of the scratch space of a CPU.
    pub(super) is_counted: bool,
}

/// Returns the maps that the loaded programs use.
pub(super) fn of(programs: &Ebpf) -> Result<Vec<MapInfo>> {
    let mut ids = BTreeSet::new();
    for (_, program) in programs.programs() {
        if program.fd().is_ok() {
            ids.extend(
                program.info()?.map_ids()?.context("the kernel does not say which maps a program uses")?,
            );
        }
    }
    ids.into_iter().map(|id| Ok(MapInfo::from_id(id)?)).collect()
}

/// Returns the name of a map in the kernel.
pub(super) fn name(map: &MapInfo) -> Result<&str> {
    map.name_as_str().context("a map without a name")
}

/// Returns the name that the kernel has for a map.
pub(super) fn name_in_kernel(name: &str) -> &str {
    name.get(..MAX_NAME).unwrap_or(name)
}

/// Copies a map that no packet has used yet.
pub(super) fn copy(map: &MapInfo) -> Result<Copied> {
    let (entries, stride) = (map.max_entries(), stride(map));
    let kind = map.map_type()?;
    let without_values = |map| Copied { map, values: Vec::new(), is_counted: false };
    let array = Map::Array { stride, entries };
    Ok(match kind {
        MapType::Array => Copied { map: array, values: values(map)?, is_counted: name(map)? != ".rodata" },
        // Packets find nothing in it that other packets left.
        MapType::PerCpuArray => {
            Copied { map: array, values: vec![0; stride * entries as usize], is_counted: false }
        }
        MapType::ProgramArray => {
            without_values(Map::Programs(Stage::ALL.map(|stage| format!("pping_tc_{}", stage.name())).into()))
        }
        MapType::Hash => {
            let (mut slots, mut values) = (HashMap::new(), Vec::new());
            let mut last = None;
            while let Some(key) = element(map, bpf_cmd::BPF_MAP_GET_NEXT_KEY, last.as_deref())? {
                let value = element(map, bpf_cmd::BPF_MAP_LOOKUP_ELEM, Some(&key))?;
                values.extend(value.context("a key without a value")?);
                values.resize(values.len().next_multiple_of(8), 0);
                slots.insert(key.clone(), slots.len());
                last = Some(key);
            }
            let hash = Map::Hash { key_size: map.key_size() as usize, stride, slots };
            Copied { map: hash, values, is_counted: true }
        }
        MapType::LpmTrie => {
            let first = element(map, bpf_cmd::BPF_MAP_GET_NEXT_KEY, None)?;
            ensure!(first.is_none(), "the map is not empty");
            without_values(Map::Empty)
        }
        MapType::Stack | MapType::Queue => {
            let first = element(map, bpf_cmd::BPF_MAP_LOOKUP_ELEM, None)?;
            ensure!(first.is_none(), "the map is not empty");
            without_values(Map::Empty)
        }
        // No helper function that uses it is known here.
        MapType::RingBuf => without_values(Map::Empty),
        _ => bail!("{kind:?} is an unknown kind of map"),
    })
}

/// The bytes from an element of an array to the next.
fn stride(map: &MapInfo) -> usize {
    map.value_size().next_multiple_of(8) as usize
}

/// Returns the values of an array, each at its offset in memory.
pub(super) fn values(map: &MapInfo) -> Result<Vec<u8>> {
    let (entries, size) = (map.max_entries(), map.value_size() as usize);
    let mut keys = vec![0_u32; entries as usize];
    let mut values = vec![0; size * entries as usize];
    let (mut last_key, fd) = (0_u32, map.fd()?);
    let mut batch = Batch {
        in_batch: 0,
        out_batch: (&raw mut last_key).expose_provenance() as u64,
        keys: keys.as_mut_ptr().expose_provenance() as u64,
        values: values.as_mut_ptr().expose_provenance() as u64,
        count: entries,
        map_fd: fd.as_fd().as_raw_fd() as u32,
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the buffers have room for all keys and all values.
    unsafe { bpf(bpf_cmd::BPF_MAP_LOOKUP_BATCH, &mut batch) }.context("reading all values")?;
    ensure!(batch.count == entries, "the kernel gave {} of {entries} values", batch.count);
    let mut bytes = vec![0; stride(map) * entries as usize];
    for (to, value) in bytes.chunks_mut(stride(map)).zip(values.chunks(size)) {
        to[..size].copy_from_slice(value);
    }
    Ok(bytes)
}

/// Returns what a command that gives a single key or value gives for a key, if anything.
fn element(map: &MapInfo, command: bpf_cmd, key: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    /// The part of `union bpf_attr` for single elements.
    #[repr(C)]
    struct Element {
        map_fd: u64,
        key: u64,
        result: u64,
        flags: u64,
    }
    let fd = map.fd()?;
    let is_key = command == bpf_cmd::BPF_MAP_GET_NEXT_KEY;
    let mut result = vec![0_u8; if is_key { map.key_size() } else { map.value_size() } as usize];
    let mut element = Element {
        map_fd: fd.as_fd().as_raw_fd() as u64,
        key: key.map_or(0, |key| key.as_ptr().expose_provenance() as u64),
        result: result.as_mut_ptr().expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: the buffer has room for a key or a value, and a key was given by the same map.
    match unsafe { bpf(command, &mut element) } {
        Ok(()) => Ok(Some(result)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error).context("reading an element"),
    }
}

/// Calls bpf(2).
///
/// # Safety
/// The attributes must be those of the command, and what they point to as large as it needs.
unsafe fn bpf<A>(command: bpf_cmd, attributes: &mut A) -> io::Result<()> {
    // SAFETY: as this function requires.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_long, attributes, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
