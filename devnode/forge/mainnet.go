package forge

func (m *maker) mainnetTransactions() error { return nil }
