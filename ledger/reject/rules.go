package reject

import "github.com/ourotail/ourotail/chain"

// rule is a rule of the ledger: what its failures are called by their numbers,
// and the rules whose failures it passes on.
type rule struct {
	name     string
	failures map[uint64]string
	inner    map[uint64]*rule
}

// names numbers names from 0; an empty one is not used.
func names(list ...string) map[uint64]string {
	m := map[uint64]string{}
	for i, n := range list {
		if n != "" {
			m[uint64(i)] = n
		}
	}
	return m
}

// rulesOf returns the rule that a transaction meets first.
func rulesOf(era chain.Era) *rule {
	switch {
	case era == chain.Byron:
		return &rule{name: "Byron"}
	case era == chain.Shelley:
		return ledgerRule(shelleyUTXOW("Expired"))
	case era < chain.Alonzo:
		return ledgerRule(shelleyUTXOW("OutsideValidityIntervalUTxO"))
	case era == chain.Alonzo:
		return ledgerRule(alonzoUTXOW(alonzoUTXO()))
	case era == chain.Babbage:
		return ledgerRule(babbageUTXOW())
	case era == chain.Conway:
		return conwayLedger(conwayUTXO())
	}
	return &rule{name: "LEDGER"} // Dijkstra: its numbers may yet change, so they are shown as they come
}

// ledgerRule is LEDGER up to Babbage.
func ledgerRule(utxow *rule) *rule {
	return &rule{name: "LEDGER", failures: names("", "DelegsFailure", "ShelleyWithdrawalsMissingAccounts", "ShelleyIncompleteWithdrawals"),
		inner: map[uint64]*rule{0: utxow}}
}

func shelleyUTXOW(expired string) *rule {
	return &rule{name: "UTXOW", failures: names("InvalidWitnessesUTXOW", "MissingVKeyWitnessesUTXOW", "MissingScriptWitnessesUTXOW",
		"ScriptWitnessNotValidatingUTXOW", "UtxoFailure", "MIRInsufficientGenesisSigsUTXOW", "MissingTxBodyMetadataHash", "MissingTxMetadata",
		"ConflictingMetadataHash", "InvalidMetadata", "ExtraneousScriptWitnessesUTXOW"),
		inner: map[uint64]*rule{4: {name: "UTXO", failures: names("BadInputsUTxO", expired, "MaxTxSizeUTxO", "InputSetEmptyUTxO", "FeeTooSmallUTxO",
			"ValueNotConservedUTxO", "OutputTooSmallUTxO", "UpdateFailure", "WrongNetwork", "WrongNetworkWithdrawal", "OutputBootAddrAttrsTooBig",
			"TriesToForgeADA", "OutputTooBigUTxO")}}}
}

func alonzoUTXO() *rule {
	return &rule{name: "UTXO", failures: names("BadInputsUTxO", "OutsideValidityIntervalUTxO", "MaxTxSizeUTxO", "InputSetEmptyUTxO", "FeeTooSmallUTxO",
		"ValueNotConservedUTxO", "OutputTooSmallUTxO", "UtxosFailure", "WrongNetwork", "WrongNetworkWithdrawal", "OutputBootAddrAttrsTooBig",
		"TriesToForgeADA", "OutputTooBigUTxO", "InsufficientCollateral", "ScriptsNotPaidUTxO", "ExUnitsTooBigUTxO", "CollateralContainsNonADA",
		"WrongNetworkInTxBody", "OutsideForecast", "TooManyCollateralInputs", "NoCollateralInputs"), inner: map[uint64]*rule{7: utxos()}}
}

func utxos() *rule {
	return &rule{name: "UTXOS", failures: names("ValidationTagMismatch", "CollectErrors", "UpdateFailure")}
}

// alonzoUTXOW is Alonzo's, around Shelley's, around Alonzo's UTXO.
func alonzoUTXOW(utxo *rule) *rule {
	shelley := shelleyUTXOW("")
	if utxo != nil {
		shelley.inner[4] = utxo
	}
	return &rule{name: "UTXOW", failures: names("ShelleyInAlonzoUtxowPredFailure", "MissingRedeemers", "MissingRequiredDatums",
		"NotAllowedSupplementalDatums", "PPViewHashesDontMatch", "MissingRequiredSigners", "UnspendableUTxONoDatumHash", "ExtraRedeemers"),
		inner: map[uint64]*rule{0: shelley}}
}

func babbageUTXOW() *rule {
	utxo := &rule{name: "UTXO", failures: names("", "AlonzoInBabbageUtxoPredFailure", "IncorrectTotalCollateralField", "BabbageOutputTooSmallUTxO",
		"BabbageNonDisjointRefInputs"), inner: map[uint64]*rule{1: alonzoUTXO()}}
	return &rule{name: "UTXOW", failures: names("", "AlonzoInBabbageUtxowPredFailure", "UtxoFailure", "MalformedScriptWitnesses",
		"MalformedReferenceScripts", "ScriptIntegrityHashMismatch"), inner: map[uint64]*rule{1: alonzoUTXOW(alonzoUTXO()), 2: utxo}}
}

func conwayLedger(utxo *rule) *rule {
	utxow := &rule{name: "UTXOW", failures: names("UtxoFailure", "InvalidWitnessesUTXOW", "MissingVKeyWitnessesUTXOW", "MissingScriptWitnessesUTXOW",
		"ScriptWitnessNotValidatingUTXOW", "MissingTxBodyMetadataHash", "MissingTxMetadata", "ConflictingMetadataHash", "InvalidMetadata",
		"ExtraneousScriptWitnessesUTXOW", "MissingRedeemers", "MissingRequiredDatums", "NotAllowedSupplementalDatums", "PPViewHashesDontMatch",
		"UnspendableUTxONoDatumHash", "ExtraRedeemers", "MalformedScriptWitnesses", "MalformedReferenceScripts", "ScriptIntegrityHashMismatch"), inner: map[uint64]*rule{0: utxo}}
	return &rule{name: "LEDGER", failures: names("", "ConwayUtxowFailure", "ConwayCertsFailure", "ConwayGovFailure", "ConwayWdrlNotDelegatedToDRep",
		"ConwayTreasuryValueMismatch", "ConwayTxRefScriptsSizeTooBig", "ConwayMempoolFailure", "ConwayWithdrawalsMissingAccounts",
		"ConwayIncompleteWithdrawals"), inner: map[uint64]*rule{1: utxow}}
}

func conwayUTXO() *rule {
	return &rule{name: "UTXO", failures: names("UtxosFailure", "BadInputsUTxO", "OutsideValidityIntervalUTxO", "MaxTxSizeUTxO", "InputSetEmptyUTxO",
		"FeeTooSmallUTxO", "ValueNotConservedUTxO", "WrongNetwork", "WrongNetworkWithdrawal", "OutputTooSmallUTxO", "OutputBootAddrAttrsTooBig",
		"OutputTooBigUTxO", "InsufficientCollateral", "ScriptsNotPaidUTxO", "ExUnitsTooBigUTxO", "CollateralContainsNonADA", "WrongNetworkInTxBody",
		"OutsideForecast", "TooManyCollateralInputs", "NoCollateralInputs", "IncorrectTotalCollateralField", "BabbageOutputTooSmallUTxO",
		"BabbageNonDisjointRefInputs"), inner: map[uint64]*rule{0: utxos()}}
}
