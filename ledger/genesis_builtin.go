package ledger

import (
	"time"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// The genesis of the public networks, as their genesis files say. Only one
// output of each test network holds anything; the others, of the first
// delegates, are there all the same.

func preview() *Genesis {
	g := &Genesis{
		Name:              "preview",
		Magic:             magicPreview,
		K:                 432,
		FirstHeight:       0,
		SystemStart:       time.Date(2022, 10, 25, 0, 0, 0, 0, time.UTC),
		ByronSlot:         20 * time.Second,
		ByronEpochSlots:   4320,
		ShelleyEpoch:      0,
		ShelleySlot:       time.Second,
		ShelleyEpochSlots: 86400,
		ActiveSlots:       0.05,
		ByronHash:         mustHash("83de1d7302569ad56cf9139a41e2e11346d4cb4a31c00142557b6ab3fa550761"),
		ShelleyHash:       mustHash("363498d1024f84bb39d3fa9593ce391483cb40d479b87233f868d6e57c3a400d"),
	}
	g.byronOutputs(map[string]uint64{
		"FHnt4NL7yPXjpZtYj1YUiX9QYYUZGXDT9gA2PJXQFkTSMx3EgawXK5BUrCHdhe2": 0,
		"FHnt4NL7yPXk7D87qAWEmfnL7wSQ9AzBU2mjZt3eM48NSCbygxgzAU6vCGiRZEW": 0,
		"FHnt4NL7yPXpazQsTdJ3Gp1twQUo4N5rrgGbRNSzchjchPiApc1k4CvqDMcdd7H": 0,
		"FHnt4NL7yPXtNo1wLCLZyGTMfAvB14h8onafiYkM7B69ZwvGgXeUyQWfi7FPrif": 0,
		"FHnt4NL7yPXtmi4mAjD43V3NB3shDs1gCuHNcMLPsRWjaw1b2yRV2xad8S8V6aq": 0,
		"FHnt4NL7yPXvDWHa8bVs73UEUdJd64VxWXSFNqetECtYfTd9TtJguJ14Lu3feth": 30000000000000000,
		"FHnt4NL7yPXvNSRpCYydjRr7koQCrsTtkovk5uYMimgqMJX2DyrEEBqiXaTd8rG": 0,
		"FHnt4NL7yPY9rTvdsCeyRnsbzp4bN7XdmAZeU5PzA1qR2asYmN6CsdxJw4YoDjG": 0,
	})
	return g
}

func preprod() *Genesis {
	g := &Genesis{
		Name:              "preprod",
		Magic:             magicPreprod,
		K:                 2160,
		FirstHeight:       1,
		SystemStart:       time.Date(2022, 6, 1, 0, 0, 0, 0, time.UTC),
		ByronSlot:         20 * time.Second,
		ByronEpochSlots:   21600,
		ShelleyEpoch:      4,
		ShelleySlot:       time.Second,
		ShelleyEpochSlots: 432000,
		ActiveSlots:       0.05,
		ByronHash:         mustHash("d4b8de7a11d929a323373cbab6c1a9bdc931beffff11db111cf9d57356ee1937"),
		ShelleyHash:       mustHash("162d29c4e1cf6b8a84f2d692e67a3ac6bc7851bc3e6e4afe64d15778bed8bd86"),
	}
	g.byronOutputs(map[string]uint64{
		"FHnt4NL7yPXhCzCHVywZLqVsvwuG3HvwmjKXQJBrXh3h2aigv6uxkePbpzRNV8q": 0,
		"FHnt4NL7yPXuJGViM3KwSPwrwECD9q5vNetX3QJDYRWgiX3RHi5i5VV32dnETDK": 0,
		"FHnt4NL7yPXuYUxBF33VX5dZMBDAab2kvSNLRzCskvuKNCSDknzrQvKeQhGUw5a": 30000000000000000,
		"FHnt4NL7yPY8exfnuJ8ACyoU7xCN93tKXSv357UrTp1nddGbkWxJpQfrt62xYFX": 0,
		"FHnt4NL7yPYFpVcAXZADrKdsqCAFvcRFYkTcqkn2guGmj8akQMiMVjhSUECvD1F": 0,
		"FHnt4NL7yPYH2vP2FLEfH2pt3K6meM7fgtjRiLBidaqpP5ogPzxLNsZy68e1KdW": 0,
		"FHnt4NL7yPYHrcxPtPufYYFWLhqvHGnZ5NFSz2KZpWQgSq4VLsUgWnkEmfUtd1E": 0,
		"FHnt4NL7yPYJiN5Y8VsQr6LP6YgN51BHBPegNjVwKkq6AooCkbTpfZ2bqkVkfXU": 0,
	})
	return g
}

func mainnet() *Genesis {
	return &Genesis{
		Name:              "mainnet",
		Magic:             magicMainnet,
		NetworkID:         1,
		K:                 2160,
		FirstHeight:       1,
		SystemStart:       time.Date(2017, 9, 23, 21, 44, 51, 0, time.UTC),
		ByronSlot:         20 * time.Second,
		ByronEpochSlots:   21600,
		ShelleyEpoch:      208,
		ShelleySlot:       time.Second,
		ShelleyEpochSlots: 432000,
		ActiveSlots:       0.05,
		ByronHash:         mustHash("5f20df933584822601f9e3f8c024eb5eb252fe8cefb24d1317dc3d432e940ebb"),
		ShelleyHash:       mustHash("1a3be38bcbb7911969283716ad7aa550250226b76a61fc51cc9a9a35d9276d81"),
		needFiles:         true,
	}
}

// knownShelleyEpoch returns the first epoch of Shelley on a public network, or
// -1: no genesis file says it where Shelley was voted in.
func knownShelleyEpoch(magic uint32) int {
	switch magic {
	case magicMainnet:
		return 208
	case magicPreprod:
		return 4
	}
	return -1
}

func mustHash(s string) chain.Hash {
	h, err := chain.ParseHash(s)
	if err != nil {
		panic(err) // a constant of this file
	}
	return h
}

func (g *Genesis) byronOutputs(balances map[string]uint64) {
	for text, lovelace := range balances {
		addr, err := address.Parse(text)
		if err != nil {
			panic(err) // a constant of this file
		}
		g.Outputs = append(g.Outputs, genesisOutput(chain.Byron, addr, lovelace))
	}
	sortOutputs(g.Outputs)
}
