//! Compiles the bench programs, which the library embeds.

#[cfg(feature = "compiled")]
fn main() -> Result<(), pping_ebpf_build::Error> {
    use pping_ebpf_build::Programs;

    for source in ["../../pping-common/src", "../../pping-ebpf"] {
        println!("cargo::rerun-if-changed={source}");
    }
    pping_ebpf_build::compile(&Programs {
        package_dir: ".",
        package: "pping-bench-programs",
        binary: "pping-baseline",
        features: &["pping-bench-programs/kernel"],
    })
}

#[cfg(not(feature = "compiled"))]
fn main() {}
