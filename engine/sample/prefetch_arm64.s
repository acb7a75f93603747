#include "textflag.h"

// func prefetch(base unsafe.Pointer, at *uint32, n int, shift uint)
TEXT ·prefetch(SB), NOSPLIT, $0-32
	MOVD base+0(FP), R0
	MOVD at+8(FP), R1
	MOVD n+16(FP), R2
	MOVD shift+24(FP), R3
	CMP  $0, R2
	BLE  done

next:
	MOVWU.P 4(R1), R4
	LSL     R3, R4, R4
	ADD     R0, R4, R4
	PRFM    (R4), PLDL2KEEP
	SUBS    $1, R2, R2
	BNE     next

done:
	RET

// func prefetchHashed(base unsafe.Pointer, ids *uint32, n int, factor uint32, shift uint)
TEXT ·prefetchHashed(SB), NOSPLIT, $0-40
	MOVD base+0(FP), R0
	MOVD ids+8(FP), R1
	MOVD n+16(FP), R2
	MOVWU factor+24(FP), R5
	MOVD shift+32(FP), R3
	CMP  $0, R2
	BLE  done

next:
	MOVWU.P 4(R1), R4
	MULW    R5, R4, R4
	LSRW    R3, R4, R4
	ADD     R4<<3, R0, R4
	PRFM    (R4), PLDL2KEEP
	SUBS    $1, R2, R2
	BNE     next

done:
	RET
