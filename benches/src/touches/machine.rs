//! Interprets eBPF programs for packets (RFC 9669).

use std::{collections::HashMap, rc::Rc};

use anyhow::{Context as _, Result, bail, ensure};
use aya_obj::generated::{self as isa, bpf_insn};

use super::{
    instructions::{arithmetic, exchanged, is_taken},
    maps::Map,
    memory::{Memory, address, offset_of, region_of},
};

/// The bytes of stack of a function.
const FRAME: usize = 512;

/// Functions that may have called one another.
const MAX_CALLS: usize = 8;

/// The loopback interface.
const LOOPBACK: u64 = 1;

/// What the clocks say at first, ns: late enough for any rate limit.
const BEGIN: u64 = 1_000_000_000_000_000;

/// The ns from a packet to the next.
const BETWEEN_PACKETS: u64 = 1_000_000;

// The registers with a meaning.
const RESULT: usize = 0;
const CONTEXT: usize = 1;
const STACK: usize = 10;

/// Programs, and all that they use.
pub(super) struct Machine {
    pub(super) memory: Memory,
    /// The maps, by the number of the region that has their values.
    pub(super) maps: HashMap<usize, Map>,
    /// What the clocks say, in ns.
    pub(super) now: u64,
    /// Instructions that the last packet took.
    pub(super) executed: u64,
    programs: HashMap<String, Rc<[bpf_insn]>>,
    context: usize,
    packet: usize,
    stack: usize,
}

/// A running program.
pub(super) struct Run {
    /// By their numbers of four bits, of which eleven are used.
    pub(super) registers: [u64; 16],
    code: Rc<[bpf_insn]>,
    next: usize,
    callers: Vec<Caller>,
}

/// A function that called another one: where it goes on, and the registers that it keeps.
struct Caller {
    next: usize,
    registers: [u64; 5],
}

impl Machine {
    /// A machine without programs and maps.
    pub(super) fn new() -> Self {
        let mut memory = Memory::new();
        Self {
            context: memory.add("the context", Vec::new(), false),
            packet: memory.add("the packet", Vec::new(), false),
            stack: memory.add("the stack", vec![0; FRAME * MAX_CALLS], false),
            memory,
            maps: HashMap::new(),
            now: BEGIN,
            executed: 0,
            programs: HashMap::new(),
        }
    }

    /// Adds a program that is linked.
    pub(super) fn add_program(&mut self, name: &str, code: &[bpf_insn]) {
        self.programs.insert(name.to_owned(), code.into());
    }

    /// Runs a tc program on a packet.
    pub(super) fn run(&mut self, program: &str, packet: &[u8]) -> Result<()> {
        self.now += BETWEEN_PACKETS;
        self.executed = 0;
        self.memory.replace(self.packet, packet)?;
        let mut registers = [0; 16];
        registers[STACK] = address(self.stack, FRAME);
        let mut run = Run { registers, code: Rc::default(), next: 0, callers: Vec::new() };
        self.enter(&mut run, program)?;
        while self.step(&mut run).with_context(|| format!("instruction {} after {program}", run.next))? {}
        Ok(())
    }

    /// Continues with the first instruction of another program.
    pub(super) fn enter(&self, run: &mut Run, program: &str) -> Result<()> {
        run.code = self.programs.get(program).with_context(|| format!("there is no {program}"))?.clone();
        run.next = 0;
        run.registers[CONTEXT] = address(self.context, 0);
        Ok(())
    }

    /// Executes the next instruction. Returns whether there are more.
    fn step(&mut self, run: &mut Run) -> Result<bool> {
        let instruction = run.take()?;
        self.executed += 1;
        let bpf_insn { off, imm, .. } = instruction;
        let code = u32::from(instruction.code);
        let [to, from] = [instruction.dst_reg(), instruction.src_reg()].map(usize::from);
        let immediate = i64::from(imm) as u64;
        let operand = if code & isa::BPF_X == 0 { immediate } else { run.registers[from] };
        let registers = &mut run.registers;
        let at = |base: u64| base.wrapping_add_signed(off.into());
        match code & 7 {
            isa::BPF_ALU | isa::BPF_ALU64 => {
                registers[to] = arithmetic(code, off, imm, registers[to], operand)?;
            }
            isa::BPF_LD => {
                let number = run.wide_immediate(instruction)?;
                run.registers[to] = number;
            }
            isa::BPF_LDX => {
                ensure!(code & 0xe0 == isa::BPF_MEM, "an unknown load");
                registers[to] = self.load(at(registers[from]), size(code))?;
            }
            isa::BPF_ST | isa::BPF_STX if code & 0xe0 == isa::BPF_MEM => {
                let value = if code & 7 == isa::BPF_ST { immediate } else { registers[from] };
                self.memory.store(at(registers[to]), size(code), value)?;
            }
            isa::BPF_STX if code & 0xe0 == isa::BPF_ATOMIC => {
                let (place, size) = (at(registers[to]), size(code));
                let old = self.memory.load(place, size)?;
                // Only as many bytes as are stored are compared.
                let expected = registers[RESULT] & (u64::MAX >> (64 - 8 * size));
                let operation = imm as u32;
                self.memory.store(place, size, exchanged(operation, old, registers[from], expected)?)?;
                match operation {
                    isa::BPF_CMPXCHG => registers[RESULT] = old,
                    _ if operation & isa::BPF_FETCH != 0 => registers[from] = old,
                    _ => (),
                }
            }
            isa::BPF_JMP if code & 0xf0 == isa::BPF_EXIT => return Ok(run.end_function()),
            isa::BPF_JMP if code & 0xf0 == isa::BPF_CALL => match from as u32 {
                0 => self.help(run, imm as u32)?,
                isa::BPF_PSEUDO_CALL => run.call(imm)?,
                _ => bail!("a call of a function of the kernel"),
            },
            isa::BPF_JMP | isa::BPF_JMP32 => {
                if is_taken(code, registers[to], operand)? {
                    run.jump(off.into())?;
                }
            }
            _ => bail!("an unknown instruction, {code:#x}"),
        }
        Ok(true)
    }

    /// Loads a number. The fields of the context are no memory: the kernel, too, finds them elsewhere.
    fn load(&mut self, from: u64, size: usize) -> Result<u64> {
        if region_of(from) != self.context {
            return self.memory.load(from, size);
        }
        let len = self.memory.region(self.packet)?.bytes.len();
        // The offsets in `struct __sk_buff` of linux/bpf.h.
        Ok(match offset_of(from) {
            0 => len as u64,
            // The VLAN tag: there is none.
            20 | 24 => 0,
            40 => LOOPBACK,
            76 => address(self.packet, 0),
            80 => address(self.packet, len),
            other => bail!("the field of the context at {other} is unknown"),
        })
    }
}

impl Run {
    /// The next instruction.
    fn take(&mut self) -> Result<bpf_insn> {
        let instruction = *self.code.get(self.next).context("the program has no such instruction")?;
        self.next += 1;
        Ok(instruction)
    }

    fn jump(&mut self, by: isize) -> Result<()> {
        self.next = self.next.checked_add_signed(by).context("a jump to before the program")?;
        Ok(())
    }

    /// The 64 bits of this instruction and the next: a number, or an address in a map.
    fn wide_immediate(&mut self, first: bpf_insn) -> Result<u64> {
        ensure!(u32::from(first.code) == isa::BPF_LD | isa::BPF_IMM | isa::BPF_DW, "an unknown load");
        let second = self.take()?;
        Ok(match u32::from(first.src_reg()) {
            0 => u64::from(second.imm as u32) << 32 | u64::from(first.imm as u32),
            isa::BPF_PSEUDO_MAP_FD => address(first.imm as usize, 0),
            isa::BPF_PSEUDO_MAP_VALUE => address(first.imm as usize, second.imm as usize),
            _ => bail!("an address that is not of a map"),
        })
    }

    /// Calls a function of the program.
    fn call(&mut self, by: i32) -> Result<()> {
        let [_, _, _, _, _, _, six, seven, eight, nine, stack, ..] = self.registers;
        self.callers.push(Caller { next: self.next, registers: [six, seven, eight, nine, stack] });
        ensure!(self.callers.len() < MAX_CALLS, "calls are nested too deeply");
        self.registers[STACK] += FRAME as u64;
        self.jump(by as isize)
    }

    /// Ends a function. Returns whether it was called by another.
    fn end_function(&mut self) -> bool {
        let Some(Caller { next, registers }) = self.callers.pop() else { return false };
        self.next = next;
        self.registers[6..=STACK].copy_from_slice(&registers);
        true
    }
}

/// The bytes that an instruction loads or stores.
fn size(code: u32) -> usize {
    match code & 0x18 {
        isa::BPF_B => 1,
        isa::BPF_H => 2,
        isa::BPF_W => 4,
        _ => 8,
    }
}
