impl Shop {
    pub(crate) async fn sell(&self, order: &Order) -> Reply<i64> {
        let mut entered = ::fenced::__private::template_section(
                <Self as ::fenced::HasLocks>::locks(&self),
                ::fenced::__private::PathBuilder::new("/locks/<order.sku>")
                    .text("/locks/")
                    .hole("order.sku", ::fenced::LockSegment::text(&order.sku))
                    .build(),
            )
            .timeout(::fenced::__private::Duration::from_millis(3000u64))
            .enter()
            .await;
        let outcome = entered
            .begin(async move |guard: FencedGuard<'_>| {
                if false {
                    return ::fenced::__private::output::<Reply<i64>>();
                }
                Ok(self.add(&guard, -1).await?)
            })
            .await;
        entered.end().await;
        <Reply<i64> as ::fenced::FencedOutput>::from_section(outcome)
    }
}
