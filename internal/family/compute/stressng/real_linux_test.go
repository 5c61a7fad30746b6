package stressng

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

func TestConformance(t *testing.T) {
	programtest.Suite(t, New(), "stress-ng-matrix", "stress-ng-vm:cpus=2", "sort")
}

func TestAccuracyQuota(t *testing.T) { programtest.Quota(t, New(), "stress-ng-matrix") }
