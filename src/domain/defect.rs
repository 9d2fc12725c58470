//! Ways to be wrong on purpose, so that `tests/defects` can show that the proofs would notice. Only
//! there with the feature `defects`, which nothing that ships has.

/// One deliberate mistake; each is a well-known one of systems of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Lateness is judged with `W(n)`, which closes windows, instead of with `W(n-1)`.
    OneWatermark,
    /// A window is late and closed once its end is *before* the watermark, not at it.
    StrictlyBefore,
    /// The position is committed in a transaction of its own, before final rows.
    PositionApart,
    /// The watermark is not in the commit, so a restart loses it.
    WatermarkInMemory,
}
