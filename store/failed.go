package store

// Failed is closed once the store cannot be written to any more for something
// that happened behind its user's back: damage, or a disk that is full. Err has
// it.
func (s *Store) Failed() <-chan struct{} { return s.failing }

// Err returns what Failed is about, nil before. It wraps ErrDamaged if what was
// read may be wrong too.
func (s *Store) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}
