//! Objects of the kernel's BPF subsystem.

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BpfObject {
    /// A program.
    Program,
    /// A map.
    Map,
    /// A link.
    Link,
}

impl BpfObject {
    /// The command of bpf(2) that returns the next id: `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID`, `BPF_LINK_GET_NEXT_ID`.
    fn command(self) -> libc::c_long {
        match self {
            Self::Program => 11,
            Self::Map => 12,
            Self::Link => 31,
        }
    }

    /// Whether an object with this id exists. It does not open the object: a program array that is opened and closed
    /// between the close of its last descriptor and the kernel's clearing of it stays until the next boot (Linux 6.18,
    /// `prog_array_map_clear`).
    pub fn exists(self, id: u32) -> bool {
        /// The part of `union bpf_attr` for these commands.
        #[repr(C)]
        struct Attributes {
            start: u32,
            next: u32,
            open_flags: u32,
        }
        let mut attributes = Attributes { start: id.saturating_sub(1), next: 0, open_flags: 0 };
        // SAFETY: the kernel reads and writes at most the given number of bytes, which is the size of `attributes`.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                self.command(),
                &raw mut attributes,
                size_of::<Attributes>() as libc::c_long,
            )
        };
        result == 0 && attributes.next == id
    }
}
