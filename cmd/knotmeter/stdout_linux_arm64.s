#include "textflag.h"

// func entry()
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	MOVD $25, R8 // fcntl
	MOVD $1, R0  // standard output
	MOVD $1, R1  // F_GETFD
	SVC
	MOVD R0, ·fcntlStdout(SB)
	JMP  _rt0_arm64_linux(SB)
