package openssl

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

func TestConformance(t *testing.T) {
	programtest.Suite(t, New(), "aes-256-gcm", "sha-256:cpus=2", "ecdsa-p256-sign", "ecdsa-p256-verify", "sort")
}

func TestAccuracyQuota(t *testing.T) { programtest.Quota(t, New(), "sha-256") }
