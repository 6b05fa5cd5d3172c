//! Link options for the kernel programs. rustc asks bpf-linker for a generic BPF CPU, and what builds the
//! programs leaves no way to say otherwise, so what is needed beyond that is named here.

fn main() {
    // 32-bit registers and atomic instructions (Linux 5.1 and 5.12).
    println!("cargo::rustc-link-arg-bins=--cpu-features=+alu32");
}
