package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pitfall is a way in which followers of chains have gone wrong, and the tests
// here that fail if this one does. A test is written "directory Name", with "."
// for the root, or "directory Name/part" for one of its parts.
type pitfall struct {
	wrong string
	tests []string
}

// pitfalls is the map from what goes wrong to what would notice. Wherever a whole
// is at stake `. TestModel` looks as well; it is named where it is the broadest.
var pitfalls = map[string][]pitfall{
	"connection": {
		{"the roll backward behind every intersection taken for a fork", []string{
			"follow TestRollBackwardWhereverItLands/at the head, a thousand times: no event, no work",
			". TestReconnectIsNoReorgAndSkipsOrRepeatsNothing", ". TestRestartIsNoReorg"}},
		{"only one point offered, and that one gone after a fork while offline", []string{
			"rollback TestLadderDoubles", "rollback TestRefiningFindsEveryFork",
			"follow TestForkWhileOfflineIsFoundAtItsDepth", "internal/e2e TestRestartGoesOn"}},
		{"nothing in common, so all over again from the start without a word", []string{
			"rollback TestPointsModel", "chainsync TestIntersectAgain", "follow TestForeignChainIsNotFollowedFromOrigin"}},
		{"data thrown away because the node was behind", []string{"follow TestNodeBehindUsIsWaitedFor", ". TestModel"}},
		{"blocks of an outage left out", []string{". TestReconnectIsNoReorgAndSkipsOrRepeatsNothing"}},
		{"blocks before a reconnect told twice", []string{". TestReconnectIsNoReorgAndSkipsOrRepeatsNothing"}},
		{"one kind of trouble retried and another not", []string{
			"chainsync TestDialPaths", "chainsync TestHandshakeEnds", "chainsync TestNodeDiesAnywhere", ". TestEveryTroubleIsRetriedWithPatience"}},
		{"a quiet chain cut off", []string{"chainsync TestQuietChainIsNotDead", ". TestQuietChainIsHealthy"}},
		{"a frozen or half-open node not noticed", []string{
			"chainsync TestFrozenNode", "chainsync TestNodeTakesNothing", ". TestFrozenConnectionIsGivenUp", ". TestFrozenNodeTurnsHealth"}},
		{"another network or no common version: no clear word, or no pause", []string{
			"chainsync TestHandshakeAnswers", "chainsync TestHandshakeDetails", "cmd/ourotail TestMessagesSayWhatToDo",
			". TestEveryTroubleIsRetriedWithPatience", ". TestOnlyAPersonCanMendItIsSaidAtOnce"}},
		{"dropped by the node for reading too slowly", []string{"chainsync TestSlowReader", "devnode TestSlowClient"}},
		{"closing hangs, or leaves something behind", []string{"chainsync TestNothingLeaks", "chainsync TestContextEnds", ". TestModel"}},
		{"blocks skipped, repeated, reordered, or on another parent believed", []string{
			"follow TestChainThatDoesNotLink", "rollback TestExtendRefuses", ". TestModel"}},
		{"a malformed point read as origin", []string{"chainsync TestOutOfTurn/point that looks like origin", "follow TestOriginNobodyAskedFor"}},
	},
	"rollback": {
		{"undoing a block brings back what it made and spent itself", []string{"store TestUndoOfAnOutputMadeAndSpentInOneBlock", "store TestModel"}},
		{"what a block that left had spent stays spent", []string{"store TestUndoRestoresWhatWasSpentForTheNextBlock", "store TestModel"}},
		{"a block looked up by its slot alone", []string{"store TestRollbackNeedsSlotAndHash", "rollback TestBoundarySharesHeightAndSlot"}},
		{"a boundary block and its predecessor at one height", []string{
			"store TestBoundaryBlockSharesItsHeight", "rollback TestBoundarySharesHeightAndSlot", "hub TestContract_1_6_LeavingABoundaryBlockIsNoEvent"}},
		{"a rollback that costs more than its blocks", []string{"store TestRollbackCostsWhatItsBlocksCost"}},
		{"two in a row", []string{"follow TestRollBackwardWhereverItLands/two in a row, deeper each time", "hub TestContract_3_9_DepthIsCountedFromTheHighestEver"}},
		{"just after a restart", []string{"internal/e2e TestRestartGoesOn", "follow TestForkWhileOfflineIsFoundAtItsDepth"}},
		{"deeper than what is kept: a loop, or a lie", []string{
			"follow TestRollBackwardWhereverItLands/below the floor: fatal, named, nothing touched", "cmd/ourotail TestForkDeeperThanK", ". TestModel"}},
		{"the new fork before its rollback, or without it", []string{
			". TestRollbackComesBeforeTheNewForksFirstBlock", "hub TestReversible", "follow TestFailedRollbackFlushesNothing"}},
		{"a buffer of confirmations that loses blocks", []string{". TestConfirmationsLoseNoBlockToARollback", "hub TestSettled"}},
		{"a restart in the middle of the past, then a fork, and nobody told", []string{". TestRestartInTheMiddleOfAReplayThenAFork", ". TestAncestor"}},
	},
	"amounts, outputs, decoding": {
		{"outputs of a failed transaction taken for made, its collateral for kept", []string{
			"ledger TestEffectsOfFailedScripts", "ledger TestSecondFails", "hub TestContract_1_2_FailedTransactions"}},
		{"a collateral return forgotten, or at a wrong index", []string{"ledger TestEffectsOfFailedScripts/failed, with collateral return"}},
		{"genesis outputs forgotten, or under wrong names", []string{
			"ledger TestBuiltinGenesis", "ledger TestVoucherAddress", "hub TestContract_1_7_GenesisOutputsSeedFromOrigin", "internal/e2e TestPreviewDigests"}},
		{"vouchers that the ledger takes at Allegra's beginning", []string{
			"follow TestUnredeemedVouchersGoAtTheAllegraBoundary", "hub TestContract_1_7_WhatTheLedgerRemovesIsUndoneLikeASpend"}},
		{"names of transactions in unusual encodings", []string{
			"ledger TestReencodedTransactionsHaveTheIdOfTheirBytes", "ledger TestIndefiniteForms", "ledger TestSets", "ledger TestReferenceBlocks"}},
		{"a legal block that does not decode: nesting, repeated keys and members, sizes", []string{
			"ledger TestDeepData", "ledger TestNotNeeded", "ledger TestRepeatedInputs", ". TestUndecodableBlockTurnsHealthAndIsKept"}},
		{"addresses that do not come back as they were", []string{"address TestOddBytes", "address TestNearlyMainnet", "address TestHugeByron", "ledger TestByronOutput"}},
		{"large amounts as numbers, many assets cut off", []string{"feed/record TestAmountsAreText", "ledger TestAmounts", "ledger TestAssetRules"}},
		{"metadata with NUL bytes or broken text", []string{"ledger TestMetadataTextMayBeAnything"}},
	},
	"store": {
		{"a position past what was done or delivered, or kept apart from it", []string{
			"follow TestFailedCommitPublishesNothing", "store TestKillBetweenTransactions", "internal/e2e TestKilledAnywhere", ". TestModel"}},
		{"a block or an undo too large for a transaction, or torn by splitting", []string{"store TestHugeBlock", "store TestKillBetweenTransactions", "store TestSnapshotsAreWhole"}},
		{"a log of values that grows for ever", []string{"store TestNoValueLog"}},
		{"after a kill: a key without its value, a lock, a store that does not open", []string{
			"store TestKillProcess", "store TestTornWriteAheadFile", "store TestHeldDirectory", "store TestOpenAfterKillBetweenMakingAFileAndSizingIt"}},
		{"a full disk", []string{". TestNoRoomOnTheDiskIsNoticedBeforeWriting", "follow TestFailedCommitPublishesNothing"}},
		{"memory beyond what was asked for", []string{"store TestMemoryHasACeiling", "mailbox TestIdleMailboxIsSmall"}},
		{"damage taken for data", []string{"store TestAnyDamage", "store TestOpenChecksHeadAgainstJournal", "store TestOpenRefusesDamagedFiles"}},
	},
	"subscribers": {
		{"a full buffer that drops, or holds everybody up", []string{"mailbox TestContract_2_1_FailsWhenFull", "hub TestContract_2_1_OthersDoNotNotice"}},
		{"events of a reconnect lost, or all of the past again", []string{"hub TestContract_3_15_AfterAPoint", "hub TestReliable", ". TestModel"}},
		{"a burst larger than the buffer", []string{"hub TestAtomic", "hub TestContract_2_1_OverflowCarriesTheLastCursor"}},
		{"a table of states that only grows", []string{"hub TestContract_3_10_TheTableIsBounded"}},
		{"a wallet of very many addresses", []string{"hub TestContract_5_1_ManyAddressesAreOneSubscription", "hub TestContract_2_6_AWalletLargerThanTheBound"}},
	},
}

// TestPitfallsAreTested: every test that the map names exists.
func TestPitfallsAreTested(t *testing.T) {
	root := filepath.Join("..", "..")
	dirs := map[string]*tested{}
	rows := 0
	for _, chapter := range pitfalls {
		for _, p := range chapter {
			rows++
			if len(p.tests) == 0 {
				t.Errorf("%s: no test", p.wrong)
			}
			for _, name := range p.tests {
				dir, test, ok := strings.Cut(name, " ")
				if !ok {
					t.Fatalf("%q names no directory", name)
				}
				test, part, _ := strings.Cut(test, "/")
				if dirs[dir] == nil {
					dirs[dir] = testsOf(t, filepath.Join(root, dir))
				}
				switch has := dirs[dir]; {
				case !has.funcs[test]:
					t.Errorf("%s: %s has no %s", p.wrong, dir, test)
				case part != "" && !has.strings[part]:
					t.Errorf("%s: %s of %s has no part %q", p.wrong, test, dir, part)
				}
			}
		}
	}
	if rows < 45 {
		t.Errorf("only %d rows", rows)
	}
}

// tested is what the test files of a directory have.
type tested struct{ funcs, strings map[string]bool }

func testsOf(t *testing.T, dir string) *tested {
	t.Helper()
	out := &tested{map[string]bool{}, map[string]bool{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				out.funcs[n.Name.Name] = n.Recv == nil
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					out.strings[s] = true
				}
			}
			return true
		})
	}
	return out
}
