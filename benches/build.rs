//! Compiles the programs that the others are measured against.

fn main() -> Result<(), pping_ebpf_build::Error> {
    println!("cargo::rerun-if-changed=../pping-common/src");
    pping_ebpf_build::compile("../pping-ebpf")
}
