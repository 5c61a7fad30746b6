package preflight

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// message is what the kernel says of a discipline.
func message(device int32, parent uint32, kind string) []byte {
	attribute := append(make([]byte, unix.SizeofRtAttr), kind+"\x00"...)
	binary.NativeEndian.PutUint16(attribute, uint16(len(attribute)))
	binary.NativeEndian.PutUint16(attribute[2:], tcaKind)
	for len(attribute)%4 != 0 {
		attribute = append(attribute, 0)
	}
	m := append(make([]byte, unix.SizeofNlMsghdr+sizeofTcMsg), attribute...)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], unix.RTM_NEWQDISC)
	binary.NativeEndian.PutUint32(m[unix.SizeofNlMsghdr+4:], uint32(device))
	binary.NativeEndian.PutUint32(m[unix.SizeofNlMsghdr+12:], parent)
	return m
}

func TestParseQdiscs(t *testing.T) {
	var list []byte
	for _, m := range [][]byte{
		message(1, rootHandle, "noqueue"), message(2, rootHandle, "mq"),
		message(2, 0x10001, "fq_codel"), message(2, 0x10002, "fq_codel"),
		message(2, 0xfffffff1, "clsact"), message(3, 0xfffffff1, "ingress"),
	} {
		list = append(list, m...)
	}
	all, err := parseQdiscs(list)
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range map[int]string{1: "noqueue", 2: "mq (fq_codel)", 3: result.Unknown, 4: result.Unknown} {
		if got := describe(all, device); got != want {
			t.Errorf("device %d: %q, want %q", device, got, want)
		}
	}
	if _, err := parseQdiscs([]byte("no message at all")); err == nil {
		t.Error("nonsense has no error")
	}
}

func FuzzParseQdiscs(f *testing.F) {
	f.Add(message(2, rootHandle, "mq"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		all, err := parseQdiscs(answer)
		for _, d := range all {
			if err != nil || d.kind == "" {
				t.Errorf("%+v, %v", d, err)
			}
		}
	})
}

// The loopback device of every kernel that has one has a discipline, be it none.
func TestLookAt(t *testing.T) {
	d := lookAt("lo")
	if d.Name != "lo" || d.Qdisc == "" || d.Offloads == "" || d.Driver == "" || d.Speed == "" {
		t.Errorf("%+v", d)
	}
	if _, err := askQdiscs(); err == nil && d.Qdisc == result.Unknown {
		t.Errorf("the kernel lists its disciplines, but %+v", d)
	}
	if d := lookAt("there-is-none"); d.Qdisc != result.Unknown ||
		d.Offloads != result.Unknown || d.Driver != result.Unknown {
		t.Errorf("%+v", d)
	}
	t.Logf("%+v", d)
}
