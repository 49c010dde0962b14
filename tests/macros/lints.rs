//! The body's own lints fire, and nothing else does.
#![deny(warnings, clippy::all, clippy::pedantic)]

use fenced::prelude::*;

use crate::inventory::{Inventory, Reply};

impl Inventory {
    #[expect(unused_variables)]
    #[fenced(lock = "/lints")]
    async fn unused_guard(&self, guard: FencedGuard<'_>) -> Reply<()> {
        Ok(())
    }

    #[fenced(lock = "/lints")]
    async fn in_the_body(&self, guard: FencedGuard<'_>) -> Reply<i64> {
        #[expect(unused_variables)]
        let unused = 1;
        #[expect(unused_mut)]
        let mut never_mutated = 1_i32;
        #[expect(clippy::cast_lossless)]
        let wide = never_mutated as i64;
        self.add(&guard, wide).await?;
        #[expect(clippy::needless_return)]
        return Ok(wide);
    }

    #[fenced(lock = "/lints/<name>")]
    async fn by_value(&self, guard: FencedGuard<'_>, name: String) -> Reply<usize> {
        self.add(&guard, 1).await?;
        Ok(name.len())
    }

    #[expect(clippy::unused_async)]
    async fn control(&self) -> u32 {
        self.sold
    }

    #[expect(dead_code)]
    #[fenced(lock = "/lints")]
    async fn never_called(&self, _guard: FencedGuard<'_>) -> Reply<()> {
        Ok(())
    }
}

#[tokio::test]
async fn annotated_functions_run() {
    let inventory = Inventory::default();
    inventory.unused_guard().await.unwrap();
    assert_eq!(inventory.in_the_body().await.unwrap(), 1);
    let name = "four".to_owned();
    assert_eq!(inventory.by_value(name).await.unwrap(), 4);
    assert_eq!(inventory.control().await, 0);
}
