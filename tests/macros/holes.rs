//! What fills a hole, and the path that comes of it.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use fenced::prelude::*;
use fenced::{LockPath, PathError};
use uuid::Uuid;

use crate::inventory::{Inventory, Order, assert_send};

type Path = Result<LockPath, LockError>;

#[derive(LockSegment)]
struct Sku(String);

#[derive(LockSegment)]
struct Id<T> {
    number: u64,
    of: PhantomData<T>,
}

#[derive(LockSegment)]
struct Wrapped<'a, T: ?Sized>(&'a T);

/// An implementation by hand takes one line.
struct Cents(u32);

impl LockSegment for Cents {
    fn text(&self) -> Cow<'_, str> {
        format!("{}c", self.0).into()
    }
}

/// Lives in one thread, although it can be sent to another.
struct Local(Cell<u8>);

impl LockSegment for Local {
    fn text(&self) -> Cow<'_, str> {
        self.0.get().to_string().into()
    }
}

impl Inventory {
    #[fenced(lock = "/s/<self.shop>/<order.sku>/<order.lines.1>")]
    async fn fields(&self, guard: FencedGuard<'_>, order: &Order) -> Path {
        Ok(guard.path().clone())
    }

    #[fenced(lock = "/<sku>/<id>/<price>/<text>/<local>")]
    async fn own_types(
        &self,
        guard: FencedGuard<'_>,
        sku: &Sku,
        id: Id<Order>,
        price: Cents,
        text: Wrapped<'_, str>,
        local: Local,
    ) -> Path {
        Ok(guard.path().clone())
    }

    #[fenced(lock = "/<text>/<number>/<letter>/<uuid>/<shared>/<signed>")]
    async fn plain_types(
        &self,
        guard: FencedGuard<'_>,
        text: Cow<'_, str>,
        number: u128,
        letter: char,
        uuid: Uuid,
        shared: &Arc<String>,
        signed: i8,
    ) -> Path {
        Ok(guard.path().clone())
    }

    #[fenced(lock = "/a <<b>> c/x-<sku>.lock/%")]
    async fn fixed_text(&self, guard: FencedGuard<'_>, sku: &str) -> Path {
        Ok(guard.path().clone())
    }

    #[fenced(lock = "/locks/<sku>")]
    async fn one(&self, guard: FencedGuard<'_>, sku: &str) -> Path {
        Ok(guard.path().clone())
    }
}

#[tokio::test]
async fn holes_take_parameters_and_fields() {
    let inventory = Inventory::of("north");
    let path = inventory.fields(&Order::of("4711")).await.unwrap();
    assert_eq!(path.as_str(), "/s/north/4711/2");
    assert_eq!(
        path.pattern(),
        Some("/s/<self.shop>/<order.sku>/<order.lines.1>")
    );
}

#[tokio::test]
async fn holes_take_every_type_with_a_canonical_text() {
    let inventory = Inventory::default();
    let id = Id {
        number: 7,
        of: PhantomData::<Order>,
    };
    let sku = Sku("a/b".to_owned());
    let own = inventory.own_types(&sku, id, Cents(5), Wrapped("w"), Local(Cell::new(3)));
    assert_eq!(assert_send(own).await.unwrap().as_str(), "/a%2Fb/7/5c/w/3");
    let plain = inventory
        .plain_types("t".into(), 8, 'ß', Uuid::nil(), &"s".to_owned().into(), -1)
        .await;
    assert_eq!(
        plain.unwrap().as_str(),
        "/t/8/ß/00000000-0000-0000-0000-000000000000/s/-1"
    );
}

#[tokio::test]
async fn fixed_text_is_taken_as_it_is() {
    let path = Inventory::default().fixed_text("s").await.unwrap();
    assert_eq!(path.as_str(), "/a <b> c/x-s.lock/%");
}

#[tokio::test]
async fn bad_values_are_refused_before_anything_is_locked() {
    let inventory = Inventory::default();
    let empty = inventory.one("").await;
    assert!(
        matches!(&empty, Err(LockError::Path(PathError::EmptyHole { hole, .. })) if hole == "sku"),
        "{empty:?}"
    );
    let long = inventory.one(&"x".repeat(994)).await;
    assert!(
        matches!(
            long,
            Err(LockError::Path(PathError::TooLong { bytes: 1001, .. }))
        ),
        "{long:?}"
    );
    let longest = inventory.one(&"x".repeat(993)).await.unwrap();
    assert_eq!(longest.as_str().len(), 1_000);
}

#[tokio::test]
async fn values_that_would_leave_their_segment_are_escaped() {
    let inventory = Inventory::default();
    for (value, expected) in [
        ("..", "/locks/%2E%2E"),
        ("a/../b", "/locks/a%2F..%2Fb"),
        ("\u{0}", "/locks/%00"),
        ("_c_1-lock-0000000001", "/locks/_c_1-lock-000000000%31"),
    ] {
        assert_eq!(inventory.one(value).await.unwrap().as_str(), expected);
    }
}
