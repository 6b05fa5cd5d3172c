//! Finds a compiler for BPF, and calls its programs.

use std::{
    fmt,
    path::Path,
    process::{Command, Stdio},
};

/// The name under which `cargo xtask setup` links Debian's compiler in rustup.
pub const LINKED_TOOLCHAIN: &str = "bpf";

/// The target the kernel programs are compiled for. It is little-endian: pping-common refuses any other.
pub const TARGET: &str = "bpfel-unknown-none";

/// A way to compile Rust for [`TARGET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// A stable compiler with a ready-made core library (Debian's `libstd-rust-web-dev-bpf`), linked in rustup as
    /// [`LINKED_TOOLCHAIN`].
    Linked,
    /// The same without rustup: the compiler on `PATH` has the BPF core library itself.
    Current,
    /// Rustup's nightly with the `rust-src` component, which compiles the core library on the way.
    Nightly,
}

impl Toolchain {
    /// Returns the first usable toolchain, in the order of the variants.
    pub fn find() -> Option<Self> {
        let candidates = if has_rustup() { &[Self::Linked, Self::Nightly][..] } else { &[Self::Current] };
        candidates.iter().copied().find(|candidate| candidate.is_usable())
    }

    /// A command that starts `program` (`cargo`, `rustc`) of this toolchain, whatever toolchain runs the
    /// caller.
    pub fn command(self, program: &str) -> Command {
        let mut command = match self.rustup_name() {
            Some(name) => {
                let mut command = Command::new("rustup");
                command.args(["run", name, program]);
                command
            }
            None => Command::new(program),
        };
        // Cargo and rustup tell their children which compiler they are; here that is the wrong one.
        for variable in
            ["CARGO", "RUSTC", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN"]
        {
            command.env_remove(variable);
        }
        command
    }

    /// The options with which cargo gets a core library for the target.
    pub fn cargo_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Linked | Self::Current => &[],
            Self::Nightly => &["-Z", "build-std=core"],
        }
    }

    /// Whether the compiler comes from Debian's packages rather than from rustup.
    pub fn is_packaged(self) -> bool {
        match self {
            Self::Linked | Self::Current => true,
            Self::Nightly => false,
        }
    }

    fn rustup_name(self) -> Option<&'static str> {
        match self {
            Self::Linked => Some(LINKED_TOOLCHAIN),
            Self::Current => None,
            Self::Nightly => Some("nightly"),
        }
    }

    fn is_usable(self) -> bool {
        sysroot(self.command("rustc")).is_some_and(|sysroot| match self {
            Self::Linked | Self::Current => has_bpf_core(&sysroot),
            Self::Nightly => Path::new(&sysroot).join("lib/rustlib/src/rust/library/core").is_dir(),
        })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Linked => "rustup's toolchain `bpf`, a link to a compiler with the BPF core library",
            Self::Current => "the compiler on PATH, which has the BPF core library",
            Self::Nightly => "rustup's nightly with rust-src",
        })
    }
}

/// Whether the Rust installation below `sysroot` has a ready-made core library for [`TARGET`].
pub fn has_bpf_core(sysroot: impl AsRef<Path>) -> bool {
    sysroot.as_ref().join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

fn has_rustup() -> bool {
    Command::new("rustup")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn sysroot(mut rustc: Command) -> Option<String> {
    let output = rustc.args(["--print", "sysroot"]).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<&str> {
        std::iter::once(command.get_program())
            .chain(command.get_args())
            .filter_map(std::ffi::OsStr::to_str)
            .collect()
    }

    #[test]
    fn rustup_is_asked_only_for_what_it_manages() {
        assert_eq!(words(&Toolchain::Linked.command("cargo")), ["rustup", "run", "bpf", "cargo"]);
        assert_eq!(words(&Toolchain::Nightly.command("rustc")), ["rustup", "run", "nightly", "rustc"]);
        assert_eq!(words(&Toolchain::Current.command("cargo")), ["cargo"]);
    }

    #[test]
    fn another_toolchain_does_not_inherit_who_called_it() {
        let command = Toolchain::Linked.command("cargo");
        assert!(command.get_envs().any(|(name, value)| name == "RUSTUP_TOOLCHAIN" && value.is_none()));
    }

    #[test]
    fn a_core_library_is_looked_for_where_rustc_does() {
        let sysroot = std::env::temp_dir().join(format!("pping-sysroot-{}", std::process::id()));
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        assert!(!has_bpf_core(&sysroot));
        std::fs::create_dir_all(library).expect("a temporary directory can be written");
        let found = has_bpf_core(&sysroot);
        std::fs::remove_dir_all(&sysroot).expect("what was made can be removed");
        assert!(found);
    }

    /// Compiles `pping-common` for a target. Returns what the compiler says.
    fn compile_common(toolchain: Toolchain, target: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pping-common/src/lib.rs");
        let output = toolchain
            .command("rustc")
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "lib",
                "--emit",
                "metadata",
                "--target",
                target,
                "-o",
            ])
            .arg(std::env::temp_dir().join(format!("pping-common-{}-{target}", std::process::id())))
            .arg(source)
            .output()
            .expect("the compiler was found");
        assert!(!output.status.success(), "pping-common compiles for {target}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn unsupported_processor_is_named() {
        let Some(toolchain) = Toolchain::find() else {
            eprintln!("NOT TESTED: without a compiler for BPF there is none for other processors either");
            return;
        };
        let sysroot = sysroot(toolchain.command("rustc")).expect("a usable compiler has one");
        let libraries =
            Path::new(&sysroot).join("lib/rustlib").read_dir().expect("a usable compiler has these");
        let (mut big_endian, mut narrow) = (0, 0);
        for library in libraries.map(Result::unwrap).filter(|library| library.path().join("lib").is_dir()) {
            let target = library.file_name().into_string().unwrap();
            let output =
                toolchain.command("rustc").args(["--print", "cfg", "--target", &target]).output().unwrap();
            let cfg = String::from_utf8_lossy(&output.stdout);
            let is_big_endian = cfg.contains("target_endian=\"big\"");
            let is_narrow =
                cfg.contains("target_pointer_width=") && !cfg.contains("target_pointer_width=\"64\"");
            if is_big_endian || is_narrow {
                let error = compile_common(toolchain, &target);
                assert!(error.contains("build it for one of those"), "{target}: {error}");
            }
            big_endian += u32::from(is_big_endian);
            narrow += u32::from(is_narrow);
        }
        if big_endian == 0 {
            eprintln!("NOT TESTED: big-endian processors, since {sysroot} has no core library for one");
        }
        if narrow == 0 {
            eprintln!("NOT TESTED: processors with 32 bits, since {sysroot} has no core library for one");
        }
    }
}
