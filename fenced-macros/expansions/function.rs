async fn function(longest: Duration) -> Reply<impl Display> {
    let entered = ::fenced::__private::installed_section(
            ::fenced::__private::PathBuilder::new("/locks/all")
                .text("/locks/all")
                .build(),
        )
        .hold(longest)
        .reentrant()
        .on_lost(::fenced::OnLost::Finish)
        .release(::fenced::Release::Detach)
        .enter()
        .await;
    let outcome = entered
        .run(async move |guard: FencedGuard<'_>| {
            if false {
                return ::fenced::__private::output::<Reply<_>>();
            }
            { Ok(guard.token()) }
        })
        .await;
    <Reply<_> as ::fenced::FencedOutput>::from_section(outcome)
}
