//! The engine alone, on one core: `cargo bench --bench engine_step`. One store and 1,000 stores in
//! tumbling hours, sliding hours in quarters, sessions, and a duplicates rule; batches of 100,000
//! events. Prints the bytes of state that an open window and a remembered key take.
#![allow(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tillmark::domain::{
    Amount, DuplicateKey, EventTime, Filter, KeyField, OutputMode, Seq, WindowSpec,
};
use tillmark::engine::{Batch, Content, Profile, Record, Rules, State, step};

const BATCH_EVENTS: u32 = 100_000;
/// One event every 10 ms: a batch spans about 17 minutes.
const MICROS_BETWEEN: i64 = 10_000;
const START_MICROS: i64 = 1_790_812_800_000_000;

/// Counts the bytes that are allocated.
struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

#[expect(unsafe_code, reason = "an allocator that counts is written no other way")]
// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(size_of(layout), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(size_of(layout), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn size_of(layout: Layout) -> i64 {
    i64::try_from(layout.size()).unwrap_or(i64::MAX)
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn rules(window: WindowSpec, grouped: bool, deduplicate: bool) -> Rules {
    Rules {
        filter: Filter([("status".parse().unwrap(), vec!["placed".to_owned()])].into()),
        window,
        watermark_delay: "1 hour".parse().unwrap(),
        group_by: if grouped { vec!["store_id".parse().unwrap()] } else { Vec::new() },
        deduplicate: if deduplicate { vec![KeyField::OrderId] } else { Vec::new() },
        output_mode: OutputMode::Append,
        idle_timeout: None,
        #[cfg(feature = "defects")]
        defect: None,
    }
}

fn hourly() -> WindowSpec {
    WindowSpec::Tumbling { size: "1 hour".parse().unwrap(), offset: "0 seconds".parse().unwrap() }
}

/// The `number`th batch of a day in `stores` stores, a little out of order.
fn batch(rules: &Rules, stores: u32, number: u32) -> Batch {
    let mut batch = Batch::default();
    let profiles: Vec<_> = (0..stores)
        .map(|store| {
            let mut values = vec![Some("placed".to_owned())];
            values.splice(0..0, rules.group_by.iter().map(|_| Some(format!("store-{store}"))));
            batch.add_profile(Profile { currency: "USD".parse().unwrap(), values })
        })
        .collect();
    for index in 0..BATCH_EVENTS {
        let seq = i64::from(number) * i64::from(BATCH_EVENTS) + i64::from(index) + 1;
        let disorder = (seq * 7_919 % 1_000) * MICROS_BETWEEN;
        let store = (seq * 104_729).rem_euclid(i64::from(stores));
        let duplicate_key =
            (!rules.deduplicate.is_empty()).then(|| DuplicateKey::new(&format!("[\"{seq}\"]")));
        batch.push(Record {
            seq: Seq::new(seq),
            event_time: EventTime::from_micros(START_MICROS + seq * MICROS_BETWEEN - disorder),
            content: Content::Event {
                amount: Amount::from_ten_thousandths(123_400).unwrap(),
                profile: profiles[usize::try_from(store).unwrap()],
                duplicate_key,
            },
        });
    }
    batch
}

fn measure(criterion: &mut Criterion) {
    let span = |text: &str| text.parse().unwrap();
    let (size, slide, offset) = (span("1 hour"), span("15 minutes"), span("0 seconds"));
    let sliding = WindowSpec::Sliding { size, slide, offset };
    let session = WindowSpec::Session { gap: span("1 minute") };
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(BATCH_EVENTS.into())).sample_size(30);
    for (name, rules, stores) in [
        ("tumbling, 1 store", rules(hourly(), false, false), 1),
        ("tumbling, 1000 stores", rules(hourly(), true, false), 1_000),
        ("sliding x4, 1 store", rules(sliding, false, false), 1),
        ("sliding x4, 1000 stores", rules(sliding, true, false), 1_000),
        ("session, 1 store", rules(session, false, false), 1),
        ("session, 1000 stores", rules(session, true, false), 1_000),
        ("tumbling with duplicates rule, 1 store", rules(hourly(), false, true), 1),
    ] {
        let batches = [batch(&rules, stores, 0), batch(&rules, stores, 1)];
        let mut warm = State::default();
        step(&rules, &mut warm, &batches[0]);
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || warm.clone(),
                |state| black_box(step(&rules, state, &batches[1])),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
    print_state_sizes();
}

fn print_state_sizes() {
    for (what, rules, stores) in [
        ("open window (group of one store id)", rules(hourly(), true, false), 1_000),
        ("remembered key (12 characters)", rules(hourly(), false, true), 1),
    ] {
        let batch = batch(&rules, stores, 0);
        let mut state = State::default();
        step(&rules, &mut state, &batch);
        let before = BYTES.load(Ordering::Relaxed);
        let copy = state.clone();
        let bytes = BYTES.load(Ordering::Relaxed) - before;
        let count = copy.open_windows().max(copy.remembered_keys());
        println!("state per {what}: {} bytes", bytes / i64::try_from(count).unwrap());
    }
}

criterion_group!(benches, measure);
criterion_main!(benches);
