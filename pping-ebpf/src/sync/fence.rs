//! A fence for processors on which an addition is none, made of a helper. See docs/architecture.md, the lock of a flow.

#[cfg(bpf_target_arch = "aarch64")]
mod calls {
    use aya_ebpf::{helpers::bpf_get_smp_processor_id, macros::map, maps::HashMap};

    /// Never has an entry: the fence takes the locks of its buckets. There are so many that two CPUs seldom share a
    /// cache line.
    #[map]
    static FENCE: HashMap<u64, u64> = HashMap::with_max_entries(1024, 0);

    /// Orders all earlier reads and writes of this CPU before all later ones, for all CPUs.
    ///
    /// The helper takes the spin lock of a bucket, finds no entry, and releases the lock. One such pair is no fence: an
    /// earlier access may move down below its acquire, a later one up above its release, and there the two may pass
    /// each other. But the processor keeps the release of the first pair before the acquire of the second, and nothing
    /// passes both.
    ///
    /// From Linux 5.11 on, the helper fails without taking the lock if the program below an interrupt is just about to
    /// take it on the same CPU. Such a call orders nothing. That takes an interrupt within some nanoseconds, so it is
    /// left as it is.
    #[inline(always)]
    pub(in super::super) fn fence() {
        // SAFETY: it takes no arguments.
        let cpu = unsafe { bpf_get_smp_processor_id() };
        // Eight bytes: see docs/lab/kernels.md, what the verifier takes.
        let cpu = u64::from(cpu);
        // Both return that there is no such entry.
        let _ = FENCE.remove(&cpu);
        let _ = FENCE.remove(&cpu);
    }
}

#[cfg(bpf_target_arch = "aarch64")]
pub(super) use calls::fence;

/// Orders nothing: on x86 each addition orders all earlier reads and writes before all later ones.
#[cfg(not(bpf_target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn fence() {}
