package store_test

import (
	"testing"

	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Exercise(t, func(*testing.T) store.Store { return &store.Memory{} })
}
