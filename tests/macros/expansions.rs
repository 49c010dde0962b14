//! The expansions that `fenced-macros` keeps as files, compiled and run as they stand there.
#![allow(
    unused_braces,
    clippy::all,
    clippy::pedantic,
    reason = "without its spans, generated code looks as if written by hand"
)]

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use fenced::prelude::*;
use fenced::{MemoryLocks, with_locks};

use crate::inventory::{Inventory, Order, Reply, assert_send};

include!("../../fenced-macros/expansions/function.rs");
include!("../../fenced-macros/expansions/future.rs");
include!("../../fenced-macros/expansions/method.rs");
include!("../../fenced-macros/expansions/segment.rs");

type Shop = Inventory;

trait Kind {}

impl Kind for u64 {}

#[tokio::test]
async fn an_expansion_runs_as_it_is_shown() {
    let shop = Shop::default();
    let sold = assert_send(shop.sell(&Order::of("4711"))).await;
    assert_eq!(sold.unwrap(), -1);
    assert!(shop.stock.current("/locks/4711").is_some());

    let locks = MemoryLocks::new();
    assert_eq!(assert_send(future(&locks)).await.unwrap(), 1);
    let shown = with_locks(locks, assert_send(function(Duration::from_secs(5)))).await;
    assert_eq!(shown.unwrap().to_string(), "2");

    let id = Id {
        number: 7_u64,
        of: PhantomData,
    };
    assert_eq!(id.text(), "7");
    assert_eq!(size_of_val(&id.of), 0);
}
