package hub

// How the tests are laid out.
//
// A test that bears a number, TestContract_3_5_…, is about that sentence of the
// contract; those of sections 1.3, 4.2 and 4.3 are also in package query, those
// of section 2 in package mailbox, 1.4, 2.5 and 5.5 in package hubtest. The named
// promises have a test of their name: TestOrdered, TestAtomic, TestReliable,
// TestReversible, TestSettled. TestTrace… replays calls that the contract's
// executable reading has written down. TestModel and TestModelLong compare the hub
// with the naive one of naive_test.go under random steps;
// TestModelReadersOnOtherGoroutines does it with readers elsewhere.
//
// Deliberate breakages. Each of these was made in the code and seen to fail
// (besides others) the tests named after it.
//
//	1.3  a union is covered by one arm             TestContract_1_3_CoverageOfOutputQueries, TestContract_1_3_OnlyCoveredBlocksReach
//	1.5  a height may be left out                  TestContract_1_5_HeightsAscendOnce, TestModel
//	1.7  genesis outputs only if a seed is asked   TestContract_1_7_GenesisOutputsSeedFromOrigin, TestTraceShared
//	2.1  a full mailbox drops                      TestContract_2_1_FailsWhenFull, TestContract_2_1_OverflowCarriesTheLastCursor
//	2.3  offers are visible before the flush       TestContract_2_3_BufferedIsNotObservable, TestDeltaModel
//	2.4  a wake-up during a wake-up is lost        TestContract_2_4_WakeReenters
//	2.5  an overflow does not unregister           TestContract_2_5_EveryDeathUnregistersAndTells, TestContract_2_5_DeadSubscriptionsCostNoProbes
//	2.6  the seed counts towards the bound         TestContract_2_6_SeedDoesNotSpendTheBound, TestContract_2_6_AWalletLargerThanTheBound
//	3.2  delivery under the lock                   TestContract_2_4_WakeMayDoAnything, TestContract_2_3_BlocksAreBufferedThenFlushed
//	3.3  corrections carry the point rolled to     TestContract_3_3_ARollbackBelowTheBaseCorrects, TestTraceShared
//	3.3  the base does not come down               TestContract_3_3_ARollbackBelowTheBaseCorrects, TestModelLong
//	3.3  what was made after the point comes back  TestContract_3_3_ARollbackBelowTheBaseCorrects, TestModelLong
//	3.3  seeds always carry origin                 TestContract_3_3_SeedsCarryTheirCreationWithinTheHorizon
//	3.4  a gated seed is not wound back            TestContract_3_4_AGatedSeedIsWoundBack
//	3.4  made and spent inside is kept             TestContract_3_4_AGatedSeedIsWoundBack, TestModelLong
//	3.5  no replay below the registration          TestContract_3_5_ASeedBelowTheRegistration
//	3.5  a seed ahead is taken at once             TestContract_3_5_ASeedAheadWaits
//	3.5  the window does not wait for seeds        TestContract_3_5_TheWindowWaitsWithinTheBound
//	3.6  window: larger of horizon and depth       TestContract_3_6_TheWindowKeepsHorizonPlusDepth, TestModel
//	3.6  gaps are stepped over                     TestContract_3_6_AnUncoveredDueHeightIsAGap, TestReliable
//	3.6  unseeded fails before it is covered       TestContract_3_6_WithoutSeedItBeginsWhereItIsFirstCovered, TestContract_5_5_MeteredConforms
//	3.7  creations before spends                   TestContract_3_7_SpendsBeforeCreationsInBlockOrder, TestContract_5_5_EmulatorConforms
//	3.8  idle without being declared               TestContract_3_8_IdleIfDeclaredAndAskedFor
//	3.9  depth counted from the tip                TestContract_3_9_DepthIsCountedFromTheHighestEver
//	3.9  any point will do                         TestContract_3_9_RefusedRollbacks
//	3.9  everybody hears of a rollback             TestContract_3_9_OnlyThoseWhoWereGivenTheBlocksHear, TestSettled
//	3.9  a waiting watermark stays up              TestContract_3_9_OnlyThoseWhoWereGivenTheBlocksHear
//	3.10 not found above the window's floor        TestContract_3_10_UnknownNamesTheOldestPoint, TestModelLong
//	3.10 the table is not bounded                  TestContract_3_10_TheTableIsBounded
//	3.11 no current value at once                  TestContract_3_11_CurrentValuesAtOnce
//	3.12 close drops what is buffered              TestContract_3_12_FailedAndClosedAreDifferent
//	3.13 a range never completes                   TestContract_3_13_ARangeCompletes
//	3.14 registered before it is refused           TestContract_3_14_ReachDependsOnTheMoment
//	3.15 a start above highest minus depth         TestContract_3_15_AfterAPoint
//	3.15 the rest of a block is left out           TestContract_3_15_AfterAPoint
//	4.1  the last of a transaction is not marked   TestAtomic
//	5.1  two keys, two events                      TestContract_5_1_FoundByTwoKeysGivenOnce
//	5.1  a key alone decides                       TestContract_5_1_WhatAKeyCannotDecideIsMatched
//	5.1  of two groups that meet one is lost       TestTraceShared, TestModelLong
//	5.2  the last correction keeps the old base    TestContract_5_2_CursorsOfARollbackAndItsCorrections
//	5.2  every seed event has a cursor             TestContract_5_5_EmulatorConforms, TestTraceShared
//	     contents dropped under a gate             TestContentsAreKeptOnlyAsLongAsNeeded, TestTraceShared
