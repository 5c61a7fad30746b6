#include "textflag.h"

// func copyArray(a, b []float64)
TEXT ·copyArray(SB), NOSPLIT, $0-48
	MOVQ a_base+0(FP), DI
	MOVQ a_len+8(FP), CX
	MOVQ b_base+24(FP), SI
	SHLQ $3, CX // bytes
	XORQ AX, AX
	TESTQ CX, CX
	JZ   done

two:
	MOVUPD (SI)(AX*1), X0
	MOVUPD X0, (DI)(AX*1)
	ADDQ   $16, AX
	CMPQ   AX, CX
	JNE    two

done:
	RET

// func triad(a, b, c []float64)
TEXT ·triad(SB), NOSPLIT, $0-72
	MOVQ a_base+0(FP), DI
	MOVQ a_len+8(FP), CX
	MOVQ b_base+24(FP), SI
	MOVQ c_base+48(FP), DX
	SHLQ $3, CX // bytes
	MOVQ $0x4008000000000000, AX // factor, 3.0
	MOVQ AX, X1
	UNPCKLPD X1, X1
	XORQ AX, AX
	TESTQ CX, CX
	JZ   done

two:
	MOVUPD (DX)(AX*1), X0
	MULPD  X1, X0
	MOVUPD (SI)(AX*1), X2
	ADDPD  X2, X0
	MOVUPD X0, (DI)(AX*1)
	ADDQ   $16, AX
	CMPQ   AX, CX
	JNE    two

done:
	RET
