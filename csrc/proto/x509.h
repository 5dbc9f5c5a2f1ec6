/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common name of a certificate's subject (RFC 5280 4.1, in DER, X.690).
 */
#ifndef ZN_PROTO_X509_H
#define ZN_PROTO_X509_H

#include "util/cursor.h"

/*
 * The subject's first common name in *name: as sent, borrows; UTF8String, PrintableString,
 * IA5String or TeletexString. Returns ZN_DONE, ZN_OTHER when the subject has none, or ZN_MALFORMED.
 */
zn_parse zn_x509_common_name(zn_span certificate, zn_span *name);

#endif
