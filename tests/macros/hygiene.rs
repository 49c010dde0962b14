//! The expansion must not depend on what the user's scope means by a name.
#![no_implicit_prelude]
#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(
    dead_code,
    non_camel_case_types,
    unused_imports,
    reason = "names that only shadow"
)]

mod renamed {
    pub(super) mod path {
        pub(crate) use ::fenced::*;
    }
}

mod std {}
mod core {}
mod fenced {}
mod tokio {}

use ::core::convert::{From, Into};
use ::core::option::Option::{self, None, Some};
use ::core::result::Result::{self, Ok};

struct String;
struct Duration;
struct Err;
struct HasLocks;
struct LockSegment;
enum Shadow {
    Ok,
    Err,
}

/// What an outer scope calls `Result` is not what a function returns.
mod other_result {
    pub(super) type Result = ::core::result::Result<i64, ::fenced::LockError>;
    pub(super) use ::core::result::Result as Outcome;
}

struct Service {
    locks: ::fenced::MemoryLocks,
    lease: i64,
}

impl ::fenced::HasLocks for Service {
    fn locks(&self) -> &dyn ::fenced::LockService {
        &self.locks
    }
}

impl Service {
    /// An inherent method with the trait's name.
    fn locks(&self) -> i64 {
        self.lease
    }

    #[::fenced::fenced(
        lock = "/<lease>/<entered>/<self.lease>",
        timeout = "3s",
        hold = "1m",
        reentrant,
        on_lost = "finish",
        release = "detach"
    )]
    async fn shadowed(
        &self,
        guard: ::fenced::FencedGuard<'_>,
        lease: i64,
        entered: i64,
        outcome: i64,
        value: i64,
        error: i64,
    ) -> Result<i64, ::fenced::LockError> {
        let _ = guard.token();
        Ok(lease + entered + outcome + value + error + self.locks())
    }

    #[::fenced::fenced(lock = "/x", timeout = "3s", crate = crate::hygiene::renamed::path)]
    async fn through_a_reexport(&self, guard: ::fenced::FencedGuard<'_>) -> other_result::Result {
        Ok(guard.token().get())
    }

    #[::fenced::fenced(lock = "/x")]
    async fn under_another_name(
        &self,
        guard: ::fenced::FencedGuard<'_>,
    ) -> other_result::Outcome<i64, ::fenced::LockError> {
        Ok(guard.token().get())
    }

    #[::fenced::fenced(lock = "/<r#type>/<r#fn.0>")]
    async fn raw(
        &self,
        guard: ::fenced::FencedGuard<'_>,
        r#type: i64,
        r#fn: (i64,),
    ) -> Result<i64, ::fenced::LockError> {
        let _ = guard.token();
        Ok(r#type + r#fn.0)
    }
}

#[derive(::fenced::LockSegment)]
struct Sku(::std::string::String);

#[derive(::fenced::LockSegment)]
#[lock_segment(crate = crate::hygiene::renamed::path)]
struct Shop {
    name: &'static str,
}

macro_rules! define {
    ($name:ident, $argument:ident, $t:ty, $body:expr) => {
        #[::fenced::fenced(lock = "/macro/<argument>/<id>", service = locks)]
        async fn $name(
            locks: &::fenced::MemoryLocks,
            guard: ::fenced::FencedGuard<'_>,
            $argument: $t,
            id: u8,
        ) -> Result<$t, ::fenced::LockError> {
            ::core::assert_eq!(guard.path().as_str(), "/macro/6/7");
            Ok($body)
        }
    };
}
define!(made_by_macro, argument, i64, argument + 1);

macro_rules! literals {
    ($name:ident, $lock:literal, $timeout:expr, $($type:tt)+) => {
        #[::fenced::fenced(lock = $lock, timeout = $timeout, service = locks)]
        async fn $name(
            guard: $($type)+,
            locks: &::fenced::MemoryLocks,
            r#type: u8,
        ) -> Result<i64, ::fenced::LockError> {
            ::core::assert_eq!(guard.path().as_str(), "/literal/8");
            Ok(guard.token().get())
        }
    };
}
literals!(
    made_of_literals,
    "/literal/<type>",
    "3s",
    ::fenced::FencedGuard<'_>
);

#[::core::prelude::v1::test]
fn names_in_scope_change_nothing() {
    let service = Service {
        locks: ::fenced::MemoryLocks::new(),
        lease: 10,
    };
    let runtime = ::tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = |result: Result<i64, ::fenced::LockError>| result.unwrap();
    ::core::assert_eq!(run(runtime.block_on(service.shadowed(1, 2, 3, 4, 5))), 25);
    ::core::assert!(run(runtime.block_on(service.through_a_reexport())) > 1);
    ::core::assert!(run(runtime.block_on(service.under_another_name())) > 2);
    ::core::assert_eq!(run(runtime.block_on(service.raw(1, (2,)))), 3);
    ::core::assert_eq!(
        run(runtime.block_on(made_by_macro(&service.locks, 6, 7))),
        7
    );
    ::core::assert!(run(runtime.block_on(made_of_literals(&service.locks, 8))) > 3);
}

#[::core::prelude::v1::test]
fn derived_segments_have_the_text_of_their_field() {
    let sku = Sku(<::std::string::String as From<&str>>::from("a"));
    ::core::assert_eq!(::fenced::LockSegment::text(&sku), "a");
    ::core::assert_eq!(::fenced::LockSegment::text(&Shop { name: "b" }), "b");
}
