#include "textflag.h"

// func triad(a, b, c []float64)
TEXT ·triad(SB), NOSPLIT, $0-72
	MOVQ a_base+0(FP), DI
	MOVQ a_len+8(FP), CX
	MOVQ b_base+24(FP), SI
	MOVQ c_base+48(FP), DX
	MOVQ $0x4008000000000000, AX // factor, 3.0
	MOVQ AX, X8
	UNPCKLPD X8, X8
	SHRQ $3, CX
	JZ   done

eight:
	MOVUPD (DX), X0
	MULPD  X8, X0
	MOVUPD (SI), X4
	ADDPD  X4, X0
	MOVUPD X0, (DI)
	MOVUPD 16(DX), X1
	MULPD  X8, X1
	MOVUPD 16(SI), X5
	ADDPD  X5, X1
	MOVUPD X1, 16(DI)
	MOVUPD 32(DX), X2
	MULPD  X8, X2
	MOVUPD 32(SI), X6
	ADDPD  X6, X2
	MOVUPD X2, 32(DI)
	MOVUPD 48(DX), X3
	MULPD  X8, X3
	MOVUPD 48(SI), X7
	ADDPD  X7, X3
	MOVUPD X3, 48(DI)
	ADDQ   $64, DX
	ADDQ   $64, SI
	ADDQ   $64, DI
	DECQ   CX
	JNZ    eight

done:
	RET
