mod in_memory {
    use crate::counters::Counting;

    fenced_core::sink_conformance!(Counting::in_memory());
}

mod in_a_file {
    use async_trait::async_trait;
    use fenced::http::{FenceServer, FileStore, Gate, HttpSink, HttpWrite};
    use fenced::testing::SinkUnderTest;
    use tempfile::TempDir;

    use crate::counters::Counting;

    struct Durable {
        counting: Counting,
        _folder: TempDir,
    }

    async fn durable() -> Durable {
        let folder = TempDir::new().expect("a folder");
        let store = FileStore::open(folder.path().join("fences")).await;
        let gate = Gate::builder().max_step(u64::MAX);
        let gate = gate.open(store.expect("a store")).await.expect("a gate");
        Durable {
            counting: Counting::start(&FenceServer::new(gate)).await,
            _folder: folder,
        }
    }

    #[async_trait]
    impl SinkUnderTest for Durable {
        type Sink = HttpSink;

        fn sink(&self) -> &HttpSink {
            self.counting.sink()
        }

        fn add(&self, resource: &str, amount: i64) -> HttpWrite {
            self.counting.add(resource, amount)
        }

        fn set(&self, resource: &str, value: i64) -> HttpWrite {
            self.counting.set(resource, value)
        }

        async fn value(&self, resource: &str) -> i64 {
            self.counting.value(resource).await
        }
    }

    fenced_core::sink_conformance!(durable());
}

/// The gate itself, as a sink of its own process.
mod gate {
    use async_trait::async_trait;
    use fenced::http::{Effect, Gate};
    use fenced::testing::SinkUnderTest;
    use serde_json::{Value, json};

    use crate::counters::Counters;

    struct Own {
        gate: Gate,
        counters: Counters,
    }

    impl Own {
        fn order(&self, name: &str, order: Value) -> Effect {
            let (counters, name) = (self.counters.clone(), name.to_owned());
            Effect::new(async move { Ok(counters.change(name, &order)) })
        }
    }

    #[async_trait]
    impl SinkUnderTest for Own {
        type Sink = Gate;

        fn sink(&self) -> &Gate {
            &self.gate
        }

        fn add(&self, resource: &str, amount: i64) -> Effect {
            self.order(resource, json!({ "add": amount }))
        }

        fn set(&self, resource: &str, value: i64) -> Effect {
            self.order(resource, json!({ "set": value }))
        }

        async fn value(&self, resource: &str) -> i64 {
            self.counters.of(resource)
        }
    }

    fenced_core::sink_conformance!(async {
        Own {
            gate: Gate::builder().max_step(u64::MAX).in_memory(),
            counters: Counters::default(),
        }
    });
}
