//! The helper functions of the kernel that the programs call for packets.

use anyhow::{Context as _, Result, bail};
use aya_obj::generated::bpf_func_id as id;

use super::{
    machine::{Machine, Run},
    maps::Map,
    memory::{address, region_of},
};

const MAP_LOOKUP_ELEM: u32 = id::BPF_FUNC_map_lookup_elem as u32;
const MAP_POP_ELEM: u32 = id::BPF_FUNC_map_pop_elem as u32;
const KTIME_GET_NS: u32 = id::BPF_FUNC_ktime_get_ns as u32;
const KTIME_GET_COARSE_NS: u32 = id::BPF_FUNC_ktime_get_coarse_ns as u32;
const GET_PRANDOM_U32: u32 = id::BPF_FUNC_get_prandom_u32 as u32;
const GET_SMP_PROCESSOR_ID: u32 = id::BPF_FUNC_get_smp_processor_id as u32;
const TAIL_CALL: u32 = id::BPF_FUNC_tail_call as u32;

impl Machine {
    /// Calls a helper function.
    pub(super) fn help(&mut self, run: &mut Run, function: u32) -> Result<()> {
        let [_, first, second, third, ..] = run.registers;
        run.registers[0] = match function {
            MAP_LOOKUP_ELEM => self.look_up(first, second)?,
            MAP_POP_ELEM => match self.map(first)? {
                Map::Empty => failure(libc::ENOENT),
                _ => bail!("something is taken from a map that is not empty"),
            },
            KTIME_GET_NS | KTIME_GET_COARSE_NS => self.now,
            // It need not be random for packets of so few flows.
            GET_PRANDOM_U32 => self.executed.wrapping_mul(0x9e37_79b1) & u64::from(u32::MAX),
            GET_SMP_PROCESSOR_ID => 0,
            TAIL_CALL => {
                let Map::Programs(programs) = self.map(second)? else { bail!("a tail call by no array") };
                let program = programs.get(third as usize).context("a tail call of no program")?.clone();
                return self.enter(run, &program);
            }
            _ => bail!("helper function {function} is unknown"),
        };
        Ok(())
    }

    fn map(&mut self, at: u64) -> Result<&mut Map> {
        self.maps.get_mut(&region_of(at)).with_context(|| format!("there is no map at {at:#x}"))
    }

    /// The address of an element, or 0.
    fn look_up(&mut self, map: u64, key: u64) -> Result<u64> {
        let number = region_of(map);
        let element = match self.maps.get(&number).context("there is no such map")? {
            Map::Array { stride, entries } => {
                let index = self.memory.load(key, 4)?;
                (index < u64::from(*entries)).then_some(index as usize * stride)
            }
            Map::Hash { key_size, stride, slots } => {
                let key = &*self.memory.access(key, *key_size)?;
                slots.get(key).map(|slot| slot * stride)
            }
            Map::Empty => None,
            Map::Programs(_) => bail!("a lookup in an array of programs"),
        };
        Ok(element.map_or(0, |offset| address(number, offset)))
    }
}

/// The result of a helper function that failed.
fn failure(errno: i32) -> u64 {
    i64::from(-errno) as u64
}
